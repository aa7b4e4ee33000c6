"""Names the first failure of a capsule, as NAME FILE LINE, or says `sound`, by format.md alone.

    python3 verify_capsule.py FOLDER [--same-boot]

`--same-boot`: its machine has run on since the last append. `read_capsule.py` and format.md lie
beside this file; nothing else is needed.
"""

import sys
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from read_capsule import (
    BLOBS,
    FIXED,
    INDEX,
    LOG,
    MANIFEST,
    SIGNATURE,
    SNAPSHOT,
    Fault,
    Folder,
    contents,
    digest,
    event,
    fits,
    matches,
    need,
    strict,
)

SUMS = "SHA256SUMS"
EMPTY_INDEX = b'{"entries":[],"format":"sojourn.index/1"}\n'
START = {"id": None, "seq": -1, "batch": -1, "epoch": 0, "clock": 0, "chain": None, "of": None}
START |= {"place": (0, "", "", 0, ""), "kind": None, "said": {}}


@contextmanager
def of(file):
    """What fails in here is a failure of that file."""
    try:
        yield
    except Fault as fault:
        fault.file = fault.file or file
        raise


class Log:
    """What the lines so far say, and what all lines account for (format.md#pardons)."""

    def __init__(self, folder):
        self.folder = folder
        self.tips = {}  # chain: the last events of its sides, the highest seq first
        self.ids = {}  # (machine, incarnation, seq): id
        self.epochs = {}  # (capsule, epoch): chain
        self.made = []  # the ids of capsules
        self.last = START
        self.gaps = set()  # (machine, incarnation, first, last) of `repaired` events
        self.claims = []  # (line, chains that it names, chains of which it names every side)
        self.left_out_until = 0  # the last line that sealed without the workspace

    def ends(self, chain):
        return self.tips.get(chain, [START])

    def before(self, found):
        """The end of a side of its chain that an event goes on from."""
        ends = self.ends(found["chain"])
        return next((end for end in ends if end["id"] == found["prev"]), ends[0])

    def follow(self, found):
        """The event is the end of a side now."""
        ends, before = self.ends(found["chain"]), self.before(found)
        goes_on = found["prev"] == before["id"] or found["seq"] > ends[0]["seq"]
        left = [end for end in ends if end is not before or not goes_on]
        self.tips[found["chain"]] = sorted([*left, found], key=lambda end: -end["seq"])

    def take(self, found):
        """The event is in the log."""
        self.follow(found)
        self.last = found
        self.ids.setdefault((*found["chain"], found["seq"]), found["id"])
        self.epochs.setdefault((found["of"], found["epoch"]), found["chain"])

    def note_pardons(self, lines):
        """Read all lines for what they account for."""
        for number, line in enumerate(lines, 1):
            try:
                found = event(self.folder, line)
            except Fault:
                continue
            self.note(found, number)
            self.follow(found)
        self.tips.clear()

    def note(self, found, number):
        said = found["said"]
        match found["kind"]:
            case "redacted":
                self.folder.redacted_events.add(said.get("event"))
                self.folder.gone_blobs.update(said.get("blobs", []))
            case "repaired":
                self.folder.gone_blobs.update(said.get("lost", []))
                gap = tuple(said.get(k) for k in ("machine", "incarnation", "first", "last"))
                if None not in gap[2:]:
                    self.gaps.add(gap)
            case "claimed":
                ids = {head["id"] for head in found["heads"]}
                named = {(head["machine"], head["incarnation"]) for head in found["heads"]}
                whole = {c for c in named if {end["id"] for end in self.tips.get(c, [])} <= ids}
                self.claims.append((number, named, whole))
            case "sealed" if said.get("without_workspace"):
                self.left_out_until = number

    def is_repaired(self, chain, first, end):
        """Whether `repaired` events name every place of the chain from `first` on before `end`."""
        while first < end:
            after = [g[3] + 1 for g in self.gaps if g[:2] == chain and g[2] <= first <= g[3]]
            if not after:
                return False
            first = max(after)
        return True

    def knows(self, head):
        """Whether a head is an event of the log, or one whose absence is accounted for."""
        chain, seq = (head["machine"], head["incarnation"]), head["seq"]
        known = self.ids.get((*chain, seq))
        if known is None:
            return len(self.ends(chain)) > 1 or self.is_repaired(chain, seq, seq + 1)
        return known == head["id"] or len(self.ends(chain)) > 1

    def place(self, found, number):
        """format.md#identity, #chains, #order: whether the event may stand here."""
        kind, seq, chain = found["kind"], found["seq"], found["chain"]
        before, capsule = self.before(found), found["goes_on"]
        begins = kind in ("created", "forked")
        own = found["id"] if begins else capsule or (self.made[0] if self.made else None)
        found["of"] = before["of"] or own
        later = [claim for claim in self.claims if claim[0] > number]
        need(duplicate_event=self.ids.get((*chain, seq)) != found["id"])
        need(identity_second=not self.ids or (kind != "created" and not (seq and capsule)))
        need(identity_missing=self.ids or (kind, seq, found["prev"]) == ("created", 0, None))
        if seq <= self.ends(chain)[0]["seq"] and found["prev"] != before["id"]:
            need(equivocation=any(chain in claim[2] for claim in later))
            return
        gap = seq > before["seq"] + 1 and self.is_repaired(chain, before["seq"] + 1, seq)
        need(chain_gap=gap or seq == before["seq"] + 1)
        need(chain_broken=gap or found["prev"] == before["id"])
        need(epoch_order=found["epoch"] >= before["epoch"])
        other = self.epochs.get((found["of"], found["epoch"]), chain)
        need(divergence=other == chain or any({chain, other} <= claim[1] for claim in later))
        need(batch_wrong=gap or found["batch"] in (seq, before["batch"]))
        need(clock_order=found["clock"] > before["clock"])
        need(clock_jump=found["clock"] - self.last["place"][0] <= 2**20)
        need(file_order=found["place"] > self.last["place"])
        need(heads_missing=seq or not self.ids or found["heads"])
        need(head_unknown=all(self.knows(head) for head in found["heads"]))
        need(identity_unknown=capsule in (None, *self.made))
        if begins:
            self.made.append(found["id"])
        self.check_blobs(found, number)

    def check_blobs(self, found, number):
        for ref in found["refs"]:
            self.folder.blob(ref)
        for entry in contents(self.folder, found):
            there = BLOBS + entry["sha256"] in self.folder.names
            if there or number > self.left_out_until:
                self.folder.blob(entry)

    def may_be_torn(self, rest):
        """format.md#torn-tail: all lines that can be read are of the append in progress."""
        batches = set()
        for line in rest:
            try:
                found = event(self.folder, line)
            except Fault:
                continue
            chain, batch = found["chain"], found["batch"]
            begun = batch == self.ends(chain)[0]["seq"] + 1
            begun = begun or (chain, batch) == (self.last["chain"], self.last["batch"])
            batches.add((chain, batch, begun))
        return len(batches) < 2 and all(begun for _, _, begun in batches)

    def heads(self):
        fields = ("id", "incarnation", "machine", "seq")
        return [{k: self.tips[chain][0][k] for k in fields} for chain in sorted(self.tips)]


def read_manifest(folder):
    """format.md#manifest, #versions."""
    data = folder.read(MANIFEST)
    need(None, manifest_missing=data is not None)
    need(too_long=len(data) <= 2**26)
    found = strict(data)
    form = found.get("format") if isinstance(found, dict) else found
    need(manifest_malformed=fits(form, "Format", []))
    need(format_unknown=form["name"] == "sojourn.capsule", read_version_newer=form["read"] < 2)
    need(manifest_malformed=fits(found, "Manifest", []))
    need(feature_unknown=not found["features"]["required"])
    need(path_unsafe=all(matches("path", path) for path in found["files"]))
    seal = found.get("seal")
    need(manifest_malformed=not seal or all(matches("h", name) for name in seal["blobs"]))
    need(write_version_newer=form["write"] < 2)
    return found


def read_log(folder, data, mark, *, same_boot):
    """format.md#verification, 2: the whole log; `mark` is what the manifest says of it."""
    log, start, heads = Log(folder), 0, ([], 0)
    lines = data.split(b"\n")[:-1]
    log.note_pardons(lines)

    def torn():
        return start >= mark["length"] and len(data) - start <= 2**24

    for number, line in enumerate(lines, 1):
        try:
            found = event(folder, line)
            log.place(found, number)
        except Fault as fault:
            unfinished = matches("torn", fault.name) and not same_boot and torn()
            is_torn = unfinished and log.may_be_torn(lines[number - 1 :])
            raise Fault("torn_tail" if is_torn else fault.name, number) from None
        log.take(found)
        start += len(line) + 1
        if start <= mark["length"]:
            heads = (log.heads(), start)
    need(len(lines) + 1, **{"torn_tail" if torn() else "line_unended": start == len(data)})
    need(None, log_shorter=start >= mark["length"])
    need(None, log_replaced=heads == (mark["heads"], mark["length"]))
    need(None, log_altered=digest(data[: mark["length"]]) == mark["sha256"])
    return log


def check_live(folder, marks):
    """format.md#verification, 4 and 5: the other files of a live capsule, and its blobs."""
    names = {*folder.names, *FIXED, *marks} - {MANIFEST, LOG}
    for path in in_order(name for name in names if not name.startswith(BLOBS)):
        mark, data = marks.get(path), folder.read(path)
        edited = "file_edited" if matches("edited", path) else "file_altered"
        altered = "derived_altered" if mark and mark.get("derived") else edited
        with of(path):
            need(None, file_missing=data is not None or path not in FIXED)
            need(None, file_unlisted=mark or path in FIXED)
            need(None, **{altered: not mark or is_as(mark, data)})
    for path in in_order(name for name in names if name.startswith(BLOBS)):
        name = path.removeprefix(BLOBS)
        with of(path):
            need(None, blob_name=matches("h", name))
            need(None, blob_altered=digest(folder.read(path)) == name)


def check_sealed(folder, manifest, log):
    """format.md#sealing; and #verification, 4 to 6, of a sealed capsule."""
    seal, files, last = manifest["seal"], manifest["files"], log.last
    listed = {path: mark["sha256"] for path, mark in files.items()}
    listed |= {
        LOG: manifest["timeline"]["sha256"],
        **{BLOBS + name: name for name in seal["blobs"]},
    }
    said = ("number", "previous", "purpose", "without_workspace")
    with of(MANIFEST):
        need(seal_wrong=(last["kind"], last["id"]) == ("sealed", seal["event"]))
        need(seal_wrong=all(last["said"].get(field) == seal.get(field) for field in said))
        need(seal_wrong={*FIXED, "VERIFY.txt"} <= {*files} and not {SUMS, SIGNATURE} & {*files})
        need(seal_wrong=files[INDEX]["sha256"] == digest(EMPTY_INDEX))
        need(seal_wrong=seal["sums"] == digest(sums(listed)))
    text = sums({**listed, MANIFEST: digest(folder.read(MANIFEST))})
    marks = {**files, SUMS: {"size": len(text), "sha256": digest(text)}}
    names = {*folder.names, *marks} - {MANIFEST, LOG, SIGNATURE}
    for path in in_order(name for name in names if not name.startswith(BLOBS)):
        with of(path):
            need(None, file_surplus=path in marks)
            need(None, file_altered=is_as(marks[path], folder.read(path)))
    blobs = {name for name in names if name.startswith(BLOBS)}
    for path in in_order(blobs | {BLOBS + name for name in seal["blobs"]}):
        name, data = path.removeprefix(BLOBS), folder.read(path)
        with of(path):
            need(None, file_surplus=name in seal["blobs"], blob_missing=data is not None)
            need(None, blob_size=len(data) == seal["blobs"][name])
            need(None, blob_altered=digest(data) == name)
    with of(SNAPSHOT):
        check_workspace(folder, seal)


def check_workspace(folder, seal):
    """The contents that the current snapshot names are in the seal, with their sizes."""
    for entry in [] if seal.get("without_workspace") else strict(folder.read(SNAPSHOT))["entries"]:
        name = entry.get("sha256")
        if name is None or (name in folder.gone_blobs and name not in seal["blobs"]):
            continue
        need(blob_missing=name in seal["blobs"])
        need(blob_size=seal["blobs"][name] == entry["size"])


def sums(listed):
    return "".join(f"{listed[path]}  {path}\n" for path in sorted(listed)).encode()


def is_as(mark, data):
    return data is not None and (mark["size"], mark["sha256"]) == (len(data), digest(data))


def in_order(names):
    return sorted(names, key=lambda name: name.encode(errors="surrogateescape"))


def verify(folder, *, same_boot):
    """format.md#verification, in its order."""
    with of(MANIFEST):
        manifest = read_manifest(folder)
    mark, data = manifest["timeline"], folder.read(LOG)
    with of(LOG):
        need(None, log_missing=data is not None)
        log = read_log(folder, data, mark, same_boot=same_boot)
    with of(MANIFEST):
        need(identity_unknown=manifest["capsule"] in log.made)
    if not manifest.get("seal"):
        check_live(folder, manifest["files"])
        return
    with of(LOG):
        need(None, log_longer=len(data) <= mark["length"])
    check_sealed(folder, manifest, log)


if __name__ == "__main__":
    try:
        verify(Folder(Path(sys.argv[1])), same_boot="--same-boot" in sys.argv)
        print("sound")
    except Fault as fault:
        print(fault.name, fault.file, fault.line or "-")
        sys.exit(1)

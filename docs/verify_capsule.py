"""Names the first failure of a capsule, as NAME FILE LINE, or says `sound`: docs/format.md in a page of plain Python.
Use: python3 verify_capsule.py FOLDER [--same-boot]; takes the tables of shapes and patterns from format.md beside it."""
import hashlib, itertools, json, re, sys; from pathlib import Path
MANIFEST, LOG, BLOBS, PLACE = "manifest.json", "memory/timeline_events.jsonl", "artifacts/blobs/", ("machine", "incarnation", "seq")
SNAPSHOT, INDEX, SIGNATURE = "artifacts/snapshot.json", "memory/vector_index/index.json", "manifest.json.sig"
FIXED = {SNAPSHOT, INDEX, "environment/spec.json", "memory/working_memory.md"}
PAGE, FOLDER = Path(__file__).with_name("format.md").read_text("utf-8"), Path(sys.argv[1])
SHAPE, PATTERN = (dict(row.split(" ", 1) for row in re.search(f"```{b}\n(.*?)\n```", PAGE, re.S)[1].split("\n")) for b in ("shapes", "patterns"))
START = {"id": None, "seq": -1, "batch": -1, "epoch": 0, "clock": 0, "chain": None, "of": None, "at": (0, "", "", 0, "")}
tips, ids, epochs, made, where, start, last, heads = {}, {}, {}, [], MANIFEST, 0, START, ([], 0)
nulls, gone, gaps, claims, slim, KEPT = set(), set(), set(), [], [0], re.search(r"MUST NOT be redacted: (.*?)\.", PAGE, re.S)[1]
there = {p.relative_to(FOLDER).as_posix() for p in FOLDER.rglob("*") if p.is_file() and p.name[:9] != ".sojourn-"}
class Fault(Exception): pass
def need(line=1, **rules):  # names the first rule that does not hold
    for name in [name for name in rules if not rules[name]][:1]: raise Fault(name, line)
def digest(data): return hashlib.sha256(data).hexdigest()
def matches(pattern, text): return isinstance(text, str) and re.search(PATTERN[pattern], text) is not None
def read(path): return (FOLDER / path).read_bytes() if path in there else None
def blob(ref):  # format.md#blobs
    data = read(BLOBS + ref["sha256"]); need(blob_missing=data is not None or ref["sha256"] in gone, blob_size=data is None or len(data) == ref["size"]); return data
def strict(data, loose="not_json"):  # format.md#json
    text, twice = data.decode(errors="replace"), []; bare = re.sub(r'(?s)"[^"\\]*(?:\\.[^"\\]*)*"?', "", text)
    depth = max(itertools.accumulate(1 if bracket in "[{" else -1 for bracket in re.findall(r"[][{}]", bare)), default=0)
    need(not_utf8=text.encode() == data, bom=text[:1] != "\ufeff", too_deep=depth <= 64)
    try: value = json.loads(text, parse_int=lambda digits: int(digits[:20]), object_pairs_hook=lambda items: twice.append(len(dict(items)) < len(items)) or dict(items))
    except json.JSONDecodeError as error: raise Fault(loose, error.lineno)
    numbers, again = re.findall(r"\d[\d.eE+-]*", bare), json.dumps(value, ensure_ascii=False)
    need(**{loose: not re.search("[NI]", bare)}, number_out_of_range=all(abs(float(n)) < 2**53 for n in numbers), lone_surrogate=not re.search("[\ud800-\udfff]", again), duplicate_key=not any(twice)); return value
def fits(v, t, refs):  # format.md#kinds: is it of the shape? Collects the references to blobs.
    if t[-1] == "~": return v is None or fits(v, t[:-1], refs)
    if t[0] in "[{": return type(v) is {"[": list, "{": dict}[t[0]] and all(fits(x, t[1:-1], refs) for x in (v if t[0] == "[" else v.values()))
    if "=" in t: return isinstance(v, dict) and fits(v, dict(n.split("=") for n in t.split("/")).get(str(v.get("type")), "-"), refs)
    t, i = {"t": "BlobRef" if isinstance(v, dict) else "s"}.get(t, t), type(v) is int and v >= 0; refs += [v] if t == "BlobRef" else []
    if t in SHAPE: return isinstance(v, dict) and all(fits(v[n.strip("?")], k, refs) if n.strip("?") in v else n[-1] == "?" for n, k in (field.split(":") for field in SHAPE[t].split()))
    return matches(t, v) if t in PATTERN else {"s": isinstance(v, str), "b": isinstance(v, bool), "i": i, "p": i and v > 0, "f": i or isinstance(v, float) and v >= 0}.get(t, v in t.split("|"))
def contents(text):  # format.md#snapshots: what a delta names
    data = blob(text) if isinstance(text, dict) else text.encode(errors="surrogatepass"); need(too_long=len(data) <= 2**26)
    delta = strict(data) if isinstance(text, str) or digest(data) == text["sha256"] else {"changed": [], "gone": []}
    need(snapshot_malformed=fits(delta, "Delta", [])); return [e for e in delta["changed"] if e.get("sha256") and e.get("size") is not None]
def event(line):  # format.md#events
    need(line_too_long=len(line) < 2**20, nul_bytes=b"\0" not in line); strict(line, "glued_lines" if b'{"body":' in line[1:] else "not_json")
    text, parse, end, stop, refs = line.decode(), json.JSONDecoder().raw_decode, 0, 0, []
    try: body, end = parse(text, 8); h, stop = parse(text, end + 10)
    except ValueError: pass
    need(line_malformed=text[:8] + text[end:end + 10] + text[stop:] == '{"body":,"header":}'); need(header_malformed=fits(h, "Header", refs)); h["id"] = digest(text[end + 10:stop].encode())
    need(body_null=body is not None or h["id"] in nulls and f"`{h['kind']}`" not in KEPT, body_altered=body is None or digest(text[8:end].encode()) == h["body"])
    if isinstance(body, dict) and "large" in body:
        need(body_malformed=fits(body, "Large", [])); raw = blob(body["large"]); need(blob_altered=raw is None or digest(raw) == body["large"]["sha256"]); body = raw and strict(raw)
    kind, chain = h["kind"] if h["kind"] in SHAPE else "Unknown", (h["machine"], h["incarnation"])
    need(body_malformed=body is None or fits(body, "Body", refs) and fits(body, kind, refs)); body = body or {}
    h |= {"chain": chain, "at": (h["clock"], *chain, h["seq"], h["id"]), "heads": body.get("heads", []) if "heads" in SHAPE[kind] else []}
    return h | {"refs": sorted(refs, key=lambda ref: (ref["sha256"], ref["size"])), "deltas": [body["delta"]] if kind == "snapshot" and body else [], "said": body, "from": body.get({"forked": "parent", "claimed": "capsule", "activated": "capsule"}.get(kind))}
def before(h, ends): return next((e for e in ends if e["id"] == h["prev"]), ends[0])  # the end of a side that it goes on from
def follow(h):  # the ends of all sides of its chain, the highest first
    ends = tips.get(h["chain"], [START]); was = before(h, ends); gone_on = h["prev"] == was["id"] or h["seq"] > ends[0]["seq"]
    tips[h["chain"]] = sorted([*(e for e in ends if e is not was or not gone_on), h], key=lambda e: -e["seq"])
def pardons(lines):  # format.md#pardons
    for number, line in enumerate(lines, 1):
        try: h = event(line); kind, said, named = h["kind"], h["said"], {(x["machine"], x["incarnation"]) for x in h["heads"]}
        except Fault: continue
        nulls.update([said.get("event")] * (kind == "redacted")); gone.update(said.get({"redacted": "blobs", "repaired": "lost"}.get(kind), []))
        gaps.update([tuple(said.get(k) for k in ("machine", "incarnation", "first", "last"))] * (kind == "repaired" and None not in (said.get("first"), said.get("last"))))
        sides = {c for c in named if {e["id"] for e in tips.get(c, [])} <= {x["id"] for x in h["heads"]}}
        claims.extend([(number, named, sides)] * (kind == "claimed")); slim.extend([number] * (kind == "sealed" and said.get("without_workspace", False))); slim[:] = [max(slim)]; follow(h)
def named(chain, first, end):  # whether `repaired` events name every place from `first` on before `end`
    more = max((g[3] + 1 for g in gaps if g[:2] == chain and g[2] <= first <= g[3]), default=first); return first >= end or more > first and named(chain, more, end)
def place(h, number):  # format.md#identity, #chains, #order
    seq, chain, ends = h["seq"], h["chain"], tips.get(h["chain"], [START]); was, new = before(h, ends), h["kind"] in ("created", "forked")
    h["of"] = was["of"] or (h["id"] if new else h["from"] or made[0] if made else None); other = epochs.get((h["of"], h["epoch"]), chain)
    gap, later = seq > was["seq"] + 1 and named(chain, was["seq"] + 1, seq), [c for c in claims if c[0] > number]; side = seq <= ends[0]["seq"] and h["prev"] != was["id"]
    need(duplicate_event=ids.get((*chain, seq)) != h["id"], identity_second=not (ids and (h["kind"] == "created" or seq and h["from"])), identity_missing=ids or (h["kind"], seq, h["prev"]) == ("created", 0, None), equivocation=not side or any(chain in c[2] for c in later))
    if side: return
    need(chain_gap=gap or seq == was["seq"] + 1, chain_broken=gap or h["prev"] == was["id"], epoch_order=h["epoch"] >= was["epoch"],
         divergence=other == chain or any({chain, other} <= c[1] for c in later), batch_wrong=gap or h["batch"] in (seq, was["batch"]),
         clock_order=h["clock"] > was["clock"], clock_jump=h["clock"] - last["at"][0] <= 2**20, file_order=h["at"] > last["at"], heads_missing=seq or not ids or h["heads"], head_unknown=all(ids.get(tuple(x[k] for k in PLACE)) == x["id"] or len(tips.get((x["machine"], x["incarnation"]), [])) > 1 or tuple(x[k] for k in PLACE) not in ids and named((x["machine"], x["incarnation"]), x["seq"], x["seq"] + 1) for x in h["heads"]), identity_unknown=h["from"] in [None, *made]); made.extend([h["id"]] * new)
    for ref in itertools.chain(h["refs"], (entry for text in h["deltas"] for entry in contents(text) if number > slim[0] or BLOBS + entry["sha256"] in there)): blob(ref)
def torn(name, rest, seen=()):  # format.md#torn-tail: may all that can be read be of the append in progress?
    for line in rest[:-1]:
        try: h = event(line)
        except Fault: continue
        begun = h["batch"] == tips.get(h["chain"], [START])[0]["seq"] + 1 or (h["chain"], h["batch"]) == (last["chain"], last["batch"])
        seen = {*seen, (h["chain"], h["batch"], begun)}
    return matches("torn", name) and "--same-boot" not in sys.argv and start >= mark["length"] and len(seen) < 2 and all(x[2] for x in seen) and len(data) - start <= 2**24
def sums(lines): return "".join(f"{lines[path]}  {path}\n" for path in sorted(lines)).encode()
def sealed(m, files, blobs, event, said):  # format.md#sealing: the marks of all files of a sealed capsule
    lines, fits = {p: x["sha256"] for p, x in {**files, LOG: m["timeline"]}.items()} | {BLOBS + x: x for x in blobs}, last["kind"] == "sealed"
    fits = fits and last["id"] == event and all(last["said"].get(k) == said.get(k) for k in ("number", "previous", "purpose", "without_workspace"))
    fits = fits and {*FIXED, "VERIFY.txt"} <= {*files} and not {"SHA256SUMS", SIGNATURE} & {*files} and digest(sums(lines)) == said["sums"]
    need(seal_wrong=fits and files[INDEX]["sha256"] == digest(b'{"entries":[],"format":"sojourn.index/1"}\n'))
    text = sums({**lines, MANIFEST: digest(read(MANIFEST))}); marks = {**files, "SHA256SUMS": {"size": len(text), "sha256": digest(text)}}
    return marks | {BLOBS + x: {"size": size, "sha256": x} for x, size in blobs.items()}
try:
    need(None, manifest_missing=MANIFEST in there); need(too_long=len(read(MANIFEST)) <= 2**26); m = strict(read(MANIFEST))
    form = m.get("format") if isinstance(m, dict) else m; need(manifest_malformed=fits(form, "Format", []))
    need(format_unknown=form["name"] == "sojourn.capsule", read_version_newer=form["read"] < 2, manifest_malformed=fits(m, "Manifest", []))
    seal = m.get("seal"); need(feature_unknown=not m["features"]["required"], path_unsafe=all(matches("path", path) for path in m["files"]),
                               manifest_malformed=not seal or all(matches("h", x) for x in seal["blobs"]), write_version_newer=form["write"] < 2)
    where, mark, data = LOG, m["timeline"], read(LOG); need(None, log_missing=LOG in there); pardons(data.split(b"\n")[:-1]); tips.clear()
    for number, line in enumerate(data.split(b"\n")[:-1], 1):
        try: h = event(line); place(h, number)
        except Fault as f: raise Fault("torn_tail" if torn(f.args[0], data[start:].split(b"\n")) else f.args[0], number)
        follow(h); last = h; ids.setdefault((*h["chain"], h["seq"]), h["id"]); epochs.setdefault((h["of"], h["epoch"]), h["chain"]); start += len(line) + 1
        if start <= mark["length"]: heads = [{k: tips[c][0][k] for k in ("id", *PLACE)} for c in sorted(tips)], start
    need(data.count(b"\n") + 1, **{"torn_tail" if start >= mark["length"] and len(data) - start <= 2**24 else "line_unended": start == len(data)})
    need(None, log_shorter=start >= mark["length"], log_replaced=heads == (mark["heads"], mark["length"]), log_altered=digest(data[:mark["length"]]) == mark["sha256"])
    where = MANIFEST; need(identity_unknown=m["capsule"] in made); where = LOG if seal and len(data) > mark["length"] else MANIFEST; need(None, log_longer=where == MANIFEST)
    marks = sealed(m, m["files"], seal["blobs"], seal["event"], seal) if seal else m["files"]; skip = {MANIFEST, LOG, SIGNATURE} if seal else {MANIFEST, LOG}
    for where in sorted({*there, *FIXED, *marks} - skip, key=lambda path: (path.startswith(BLOBS), path.encode(errors="surrogateescape"))):
        mark, data, name = marks.get(where, {}), read(where), where.removeprefix(BLOBS)
        size, same = data is not None and len(data), data is not None and mark.get("sha256") == digest(data)
        if name != where and not seal: need(None, blob_name=matches("h", name), blob_altered=digest(data) == name); continue
        if name != where: need(None, file_surplus=mark, blob_missing=data is not None, blob_size=size == mark.get("size"), blob_altered=same); continue
        other = "file_altered" if seal else "derived_altered" if mark.get("derived") else "file_edited" if matches("edited", where) else "file_altered"
        need(None, file_missing=seal or data is not None or where not in FIXED, **{"file_surplus" if seal else "file_unlisted": mark or (not seal and where in FIXED)})
        need(None, **{other: not mark or (same and size == mark["size"])})
    where = SNAPSHOT
    for x in strict(read(where))["entries"] if seal and not seal.get("without_workspace") else ():
        need(blob_missing=x.get("sha256", "-") in {"-", *seal["blobs"]}, blob_size=seal["blobs"].get(x.get("sha256")) == x.get("size"))
    print("sound")
except Fault as fault: sys.exit(print(fault.args[0], where, fault.args[1] or "-") or 1)

"""Network file systems are known by the kernel's table of mounts."""

import pytest

from sojourn.store.mounts import network_type, network_type_in

TABLE = """\
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 22 0:40 / /share rw,relatime shared:2 master:1 - nfs4 server:/share rw,vers=4.2
31 30 254:1 / /share/local rw - xfs /dev/vdb rw
32 22 0:41 / /mnt/with\\040space rw - fuse.sshfs me@host:/ rw
33 22 0:42 / /mnt/odd\\134name rw - 9p share rw
34 22 0:43 / /over rw - ext4 /dev/vdc rw
35 34 0:44 / /over rw - cifs //server/share rw
36 22 0:45 / /fuse rw - fuse.bindfs /x rw
a line that is none
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", None),
        ("/shared/me", None),
        ("/share", "nfs4"),
        ("/share/me/capsule", "nfs4"),
        ("/share/local/capsule", None),
        ("/share/locality", "nfs4"),
        ("/mnt/with space/x", "fuse.sshfs"),
        ("/mnt/odd\\name", "9p"),
        ("/over/x", "cifs"),
        ("/fuse/x", None),
    ],
)
def test_the_innermost_and_latest_mount_counts(path: str, kind: str | None) -> None:
    assert network_type_in(TABLE, path) == kind


def test_a_table_without_lines_tells_nothing() -> None:
    assert network_type_in("", "/share") is None
    assert network_type("/proc/self") is None

"""Makes a sealed folder live again, before anything else is written (docs/format.md#sealing)."""

from sojourn.format import layout, manifest, seal
from sojourn.ports import Store


async def unseal(store: Store, found: manifest.Manifest) -> None:
    """Replace the sealed manifest, then remove signature and sums; nothing for a live one.

    Under the capsule's lock. Raises: StorageError.
    """
    if found.seal is None:
        return
    await store.replace_file(layout.MANIFEST, manifest.encode(seal.unsealed(found)))
    for name in layout.COMPANIONS:
        await store.remove_file(name)

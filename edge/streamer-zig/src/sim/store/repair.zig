//! Damage and repair in the store's model: a block of a version rots at rest, a read finds it, and
//! it is repaired with the bytes of another store, which may send wrong ones. `model` is the
//! `StoreModel`, which imports this file.

const std = @import("std");
const store = @import("store");
const store_stamps = @import("stamps.zig");

const block = store.block;
const Uuid = @import("base").Uuid;
const sector_size = 512;

/// What is damaged until a repair has succeeded.
pub const Damaged = struct { version: Uuid, place: u64 };

/// A block rots and is repaired.
pub fn rot(model: anytype) !void {
    const versions = model.versions.slice();
    const version = &versions[@intCast(model.prng.below(versions.len))];
    const places = model.geometry.places();
    const place = places[@intCast(model.prng.below(places.len))];
    {
        var opened = try model.store.openVersion(version.id);
        defer opened.close();
        const entry = try opened.reader.entryOf(place);
        if (entry.isZeros() or !store.repair.isPlain(entry.location)) return;
        var name: store.files.Name = undefined;
        const file = model.store.data.nameOf(entry.location.file, &name);
        const at = entry.location.offset() + model.prng.below(block.block_size);
        model.sim.flipBit(file, at, @intCast(model.prng.below(8)));
    }
    model.damaged = .{ .version = version.id, .place = place };
    // As after a start: nothing in memory is checked.
    model.store.cache.clear();
    return mend(model);
}

/// Repairs what is damaged; in between, calls of the disk may fail.
pub fn mend(model: anytype) !void {
    const damaged = model.damaged orelse return;
    var opened = try model.store.openVersion(damaged.version);
    defer opened.close();
    const place = damaged.place;
    const right = blockOf(model, model.findVersion(damaged.version), place);
    const found = try store.repair.find(&opened.reader, place, place + 1) orelse {
        // A killed process has written it and not synced it: a power cut may damage it again.
        const entry = try opened.reader.entryOf(place);
        try store.repair.writeBlock(&model.store.data, &entry, &right);
        model.damaged = null;
        return;
    };
    if (found.level != null or found.index != place)
        return model.failUnlessStopped(error.DiskFailed, "damage is found at another place");
    var bytes: block.Block = undefined;
    if (opened.reader.source().read(bytes[0..sector_size], place * block.block_size)) |_|
        return model.fail("a damaged block is read")
    else |err| if (err != error.Damaged)
        return model.failUnlessStopped(err, "a damaged block is not found");
    if (model.prng.chance(1, 3)) try refuseWrong(model, &found.entry, &right);
    if (model.prng.chance(1, 3)) {
        const call = model.sim.operations + model.prng.below(2);
        model.sim.fail_at = call;
        model.sim.fail_with = if (model.prng.chance(1, 2)) error.NoSpace else error.DiskFailed;
        const written = store.repair.writeBlock(&model.store.data, &found.entry, &right);
        model.sim.fail_at = std.math.maxInt(u64);
        if (written) |_|
            return model.fail("a repair succeeds on a disk that fails")
        else |err| if (model.isStopped()) return err;
    }
    try store.repair.writeBlock(&model.store.data, &found.entry, &right);
    if (try store.repair.find(&opened.reader, place, place + 1) != null)
        return model.failUnlessStopped(error.DiskFailed, "a repaired block is damaged");
    model.damaged = null;
    model.environment.counts.repaired += 1;
}

/// Another store sends something else: a changed byte, or another block.
fn refuseWrong(
    model: anytype,
    entry: *const block.Entry,
    right: *const block.Block,
) !void {
    var wrong = right.*;
    const at: usize = @intCast(model.prng.below(wrong.len));
    if (model.prng.chance(1, 2)) wrong[at] ^= 1 else wrong = @splat(right[0] ^ 1);
    if (store.repair.writeBlock(&model.store.data, entry, &wrong)) |_|
        return model.fail("a repair takes wrong bytes")
    else |err| if (err != error.Wrong) return err;
}

/// What another store has at this place.
fn blockOf(model: anytype, version: anytype, place: u64) block.Block {
    var bytes: block.Block = @splat(0);
    var at: usize = 0;
    while (at < bytes.len) : (at += sector_size) {
        const offset = place * block.block_size + at;
        if (offset >= model.geometry.diskSize()) break;
        const stamp = model.sectorOf(&version.content, offset);
        store_stamps.fill(bytes[at..][0..sector_size], stamp, offset / sector_size);
    }
    return bytes;
}

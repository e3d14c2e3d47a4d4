//! Damage and repair in the store's model: a block of a version rots at rest, and with it the unit
//! that it is packed in; a read finds it, and it is repaired with the bytes of another store, which
//! may send wrong ones, or not all of them. `model` is the `StoreModel`, which imports this file.

const std = @import("std");
const store = @import("store");
const store_stamps = @import("stamps.zig");

const block = store.block;
const UnitRepair = store.UnitRepair;
const Uuid = @import("base").Uuid;
const sector_size = 512;

/// What is damaged until a repair has succeeded.
pub const Damaged = struct { version: Uuid, place: u64 };

/// Blocks of which one is packed more often than not, if any is.
const choices = 6;

/// A block rots and is repaired.
pub fn rot(model: anytype) !void {
    const versions = model.versions.slice();
    const places = model.geometry.places();
    for (0..choices) |choice| {
        const version = &versions[@intCast(model.prng.below(versions.len))];
        const place = places[@intCast(model.prng.below(places.len))];
        const entry = blk: {
            var opened = try model.store.openVersion(version.id);
            defer opened.close();
            const entry = try opened.reader.entryOf(place);
            const is_last = choice + 1 == choices;
            if (entry.isZeros() or !(entry.location.is_packed or is_last)) continue;
            // Later readers have checked what will be damaged.
            for (places) |each| _ = try readBlock(&opened.reader, model.geometry.diskSize(), each);
            break :blk entry;
        };
        damage(model, &entry);
        model.damaged = .{ .version = version.id, .place = place };
        return mend(model);
    }
}

fn damage(model: anytype, entry: *const block.Entry) void {
    const location = entry.location;
    var name: store.files.Name = undefined;
    const file = model.store.data.nameOf(location.file, &name);
    // The header of a unit, and the first byte that is packed.
    const size: u64 = if (location.is_packed) store.unit.header_size + 1 else block.block_size;
    const at = location.offset() + model.prng.below(size);
    model.sim.flipBit(file, at, @intCast(model.prng.below(8)));
    // As after a start: nothing in memory is checked. What is packed is found damaged also by those
    // who have checked it.
    if (!location.is_packed or model.prng.chance(1, 2)) model.store.cache.clear();
    model.store.units.clear();
}

/// Repairs what is damaged; in between, calls of the disk may fail.
pub fn mend(model: anytype) !void {
    const damaged = model.damaged orelse return;
    var opened = try model.store.openVersion(damaged.version);
    defer opened.close();
    const units = try model.environment.gpa.create(UnitRepair);
    defer model.environment.gpa.destroy(units);
    units.location = .none;
    const entry = try opened.reader.entryOf(damaged.place);
    if (entry.location.is_packed)
        try mendUnit(model, units, entry.location)
    else
        try mendBlock(model, units, &opened.reader, damaged);
    model.damaged = null;
    model.environment.counts.repaired += 1;
}

fn mendBlock(
    model: anytype,
    units: *UnitRepair,
    reader: *store.VersionReader,
    damaged: Damaged,
) !void {
    const place = damaged.place;
    const right = blockOf(model, model.findVersion(damaged.version), place);
    const found = try store.repair.find(reader, units, place, place + 1) orelse {
        // A killed process has written it and not synced it: a power cut may damage it again.
        const entry = try reader.entryOf(place);
        return store.repair.writeBlock(&model.store.data, &entry, &right);
    };
    try expectDamage(model, reader, &found, place);
    if (model.prng.chance(1, 3)) {
        const wrong = wrongOf(model, &right);
        if (store.repair.writeBlock(&model.store.data, &found.entry, &wrong)) |_|
            return model.fail("a repair takes wrong bytes")
        else |err| if (err != error.Wrong) return err;
    }
    if (model.prng.chance(1, 3)) {
        failNext(model);
        const written = store.repair.writeBlock(&model.store.data, &found.entry, &right);
        model.sim.fail_at = std.math.maxInt(u64);
        if (written) |_|
            return model.fail("a repair succeeds on a disk that fails")
        else |err| if (model.isStopped()) return err;
    }
    try store.repair.writeBlock(&model.store.data, &found.entry, &right);
    if (try store.repair.find(reader, units, place, place + 1) != null)
        return model.failUnlessStopped(error.DiskFailed, "a repaired block is damaged");
}

/// The other store has one version after the other, and sometimes not all blocks of it: until all
/// have come, each is right or fails, for all who read.
fn mendUnit(model: anytype, units: *UnitRepair, location: block.Location) !void {
    const places = model.geometry.places();
    for (model.versions.slice()) |*version| for (places) |place| {
        var opened = try model.store.openVersion(version.id);
        defer opened.close();
        const entry = try opened.reader.entryOf(place);
        if (entry.isZeros() or !entry.location.is_packed) continue;
        if (!entry.location.unit().eql(location.unit())) continue;
        const found = try store.repair.find(&opened.reader, units, place, place + 1);
        if (found) |*first| try expectDamage(model, &opened.reader, first, place);
        // What is not damaged was written by a process that was killed, and not synced.
        try units.read(&model.store.data, location);
        const parts =
            store.unit_repair.partsOf(&opened.reader, .{ .index = place, .entry = entry });
        for (parts.constSlice(), 0..) |*part, at| {
            if (at > 0 and model.prng.chance(2, 3)) continue;
            const right = blockOf(model, version, part.index);
            if (model.prng.chance(1, 3)) {
                const wrong = wrongOf(model, &right);
                if (units.put(&part.entry, &wrong)) |_|
                    return model.fail("a repair takes wrong bytes")
                else |err| if (err != error.Wrong) return err;
            }
            try units.put(&part.entry, &right);
        }
        if (model.prng.chance(1, 4)) {
            failNext(model);
            const written = units.write(&model.store.data);
            model.sim.fail_at = std.math.maxInt(u64);
            // Where a part of 4 KiB cannot be written, all of them are.
            written catch if (model.isStopped()) return error.Stopped;
        }
        units.write(&model.store.data) catch |err| if (err != error.Misfit) return err;
        try expectNoneWrong(model);
    };
    for (model.versions.slice()) |*version| {
        var opened = try model.store.openVersion(version.id);
        defer opened.close();
        for (places) |place| {
            const found = try store.repair.find(&opened.reader, units, place, place + 1);
            if (found != null and !model.isStopped())
                return model.fail("a block of a repaired unit is damaged");
        }
    }
}

fn expectDamage(
    model: anytype,
    reader: *store.VersionReader,
    found: *const store.repair.Damage,
    place: u64,
) !void {
    if (found.level != null or found.index != place)
        return model.failUnlessStopped(error.DiskFailed, "damage is found at another place");
    if (readBlock(reader, model.geometry.diskSize(), place)) |_|
        return model.fail("a damaged block is read")
    else |err| if (err != error.Damaged)
        return model.failUnlessStopped(err, "a damaged block is not found");
}

/// Every block of every version is right, or fails.
fn expectNoneWrong(model: anytype) !void {
    for (model.versions.slice()) |*version| {
        var opened = try model.store.openVersion(version.id);
        defer opened.close();
        for (model.geometry.places()) |place| {
            const bytes = readBlock(&opened.reader, model.geometry.diskSize(), place) catch |err| {
                if (err == error.Damaged) continue;
                return model.failUnlessStopped(err, "a version cannot be read");
            };
            if (!std.mem.eql(u8, &bytes, &blockOf(model, version, place)))
                return model.fail("a byte of a version is wrong beside a repair");
        }
    }
}

/// With zeros behind the end of the disk.
fn readBlock(reader: *store.VersionReader, disk_size: u64, place: u64) !block.Block {
    var bytes: block.Block = @splat(0);
    const offset = place * block.block_size;
    const size: usize = @intCast(@min(bytes.len, disk_size - offset));
    try reader.source().read(bytes[0..size], offset);
    return bytes;
}

/// One of the next calls that change the disk.
fn failNext(model: anytype) void {
    model.sim.fail_at = model.sim.operations + model.prng.below(2);
    model.sim.fail_with = if (model.prng.chance(1, 2)) error.NoSpace else error.DiskFailed;
}

/// Another store sends something else: a changed byte, or another block.
fn wrongOf(model: anytype, right: *const block.Block) block.Block {
    var wrong = right.*;
    const at: usize = @intCast(model.prng.below(wrong.len));
    if (model.prng.chance(1, 2)) wrong[at] ^= 1 else wrong = @splat(right[0] ^ 1);
    return wrong;
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

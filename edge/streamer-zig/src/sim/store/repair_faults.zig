//! Repairs of damaged blocks and units with single faults (single_faults.zig): what is not repaired
//! stays damaged, and nothing else is read.

const std = @import("std");
const faults = @import("single_faults.zig");
const store_module = @import("store");
const tiny_disk = @import("tiny_disk.zig");
const testing = std.testing;

const base_id = faults.base_id;
const imported_id = faults.imported_id;
const block_count = tiny_disk.block_count;
const base_content = faults.base_content;
const next_content = tiny_disk.next_content;
const blockOf = tiny_disk.blockOf;
const byteOf = tiny_disk.byteOf;
const Machine = faults.Machine;
const UnitRepair = store_module.UnitRepair;
const Uuid = @import("base").Uuid;

/// Of the block that is repaired.
const rotten_place = 101;

fn damageBase(machine: *Machine) !void {
    var store = try machine.openStore();
    defer store.close(machine.gpa);
    var version = try store.openVersion(base_id);
    defer version.close();
    const entry = try version.reader.entryOf(rotten_place);
    var name: store_module.files.Name = undefined;
    const file = store.data.nameOf(entry.location.file, &name);
    machine.sim.flipBit(file, entry.location.offset() + 5, 3);
}

fn repairBase(machine: *Machine) !void {
    var store = try machine.openStore();
    defer store.close(machine.gpa);
    var version = try store.openVersion(base_id);
    defer version.close();
    const units = try machine.gpa.create(UnitRepair);
    defer machine.gpa.destroy(units);
    const damage = try store_module.repair.find(&version.reader, units, 0, block_count);
    // Nothing else is damaged: a call of the disk has failed.
    if (damage) |found|
        if (found.level != null or found.index != rotten_place) return error.ReadFailed;
    // It may have been written and not synced.
    const entry = if (damage) |found| found.entry else try version.reader.entryOf(rotten_place);
    const bytes = blockOf(rotten_place, byteOf(&base_content, rotten_place));
    try store_module.repair.writeBlock(&store.data, &entry, &bytes);
}

/// Of the blocks of the unit that is repaired, in the order in which they come.
const unit_places = [_]u64{ 2, 0 };

fn damageUnit(machine: *Machine) !void {
    var store = try machine.openStore();
    defer store.close(machine.gpa);
    var version = try store.openVersion(imported_id);
    defer version.close();
    const location = (try version.reader.entryOf(unit_places[0])).location;
    for (unit_places) |place| {
        const entry = try version.reader.entryOf(place);
        try testing.expect(entry.location.is_packed and entry.location.unit().eql(location.unit()));
    }
    var name: store_module.files.Name = undefined;
    machine.sim.flipBit(store.data.nameOf(location.file, &name), location.offset() + 5, 3);
}

/// One block after the other: in between the unit lacks one.
fn repairUnit(machine: *Machine) !void {
    var store = try machine.openStore();
    defer store.close(machine.gpa);
    var version = try store.openVersion(imported_id);
    defer version.close();
    const units = try machine.gpa.create(UnitRepair);
    defer machine.gpa.destroy(units);
    for (unit_places) |place| {
        const entry = try version.reader.entryOf(place);
        try units.read(&store.data, entry.location);
        try units.put(&entry, &blockOf(place, byteOf(&next_content, place)));
        try units.write(&store.data);
    }
}

fn isSound(machine: *Machine, id: Uuid, content: *const tiny_disk.Content) !bool {
    var store = try machine.openStore();
    defer store.close(machine.gpa);
    var version = try store.openVersion(id);
    defer version.close();
    const units = try testing.allocator.create(UnitRepair);
    defer testing.allocator.destroy(units);
    const damage = try store_module.repair.find(&version.reader, units, 0, block_count);
    if (damage == null) try faults.expectContent(machine, id, content);
    return damage == null;
}

fn isBaseSound(machine: *Machine) !bool {
    return isSound(machine, base_id, &base_content);
}

fn isUnitSound(machine: *Machine) !bool {
    return isSound(machine, imported_id, &next_content);
}

test "a damaged block is repaired completely or stays damaged" {
    try faults.expectWhole(&.{
        .prepare = &.{ faults.makeStore, faults.commitBase, damageBase },
        .run = repairBase,
        .isDone = isBaseSound,
        // Nobody else syncs the block: the next read finds it damaged again.
        .is_settled_by_change = false,
        .failures = &.{ error.DiskFailed, error.NoSpace },
    });
}

test "a damaged unit is repaired completely, or each of its blocks is right or damaged" {
    try faults.expectWhole(&.{
        .prepare = &.{ faults.makeStore, faults.importAlone, damageUnit },
        .run = repairUnit,
        .isDone = isUnitSound,
        .is_settled_by_change = false,
        .failures = &.{ error.DiskFailed, error.NoSpace },
    });
}

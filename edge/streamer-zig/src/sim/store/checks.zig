//! Checks the simulated store against its model: every byte of versions and layers, and what the
//! store must refuse.

const std = @import("std");
const store_module = @import("store");
const StoreDevice = @import("device.zig");
const StoreModel = @import("model.zig");
const store_stamps = @import("stamps.zig");
const store_operation = @import("operation.zig");
const assert = std.debug.assert;

const block = store_module.block;
const Error = StoreModel.Error;
const Failure = StoreModel.Failure;
const Range = store_operation.Range;
const Uuid = @import("base").Uuid;
const LayerKind = store_operation.LayerKind;
const WriteLayer = store_module.WriteLayer;
const sector_size = StoreDevice.sector_size;
const sectors_per_block = StoreDevice.sectors_per_block;

/// Reads a block of a version, as other devices do meanwhile.
pub fn checkAnyVersion(model: *StoreModel) Error!void {
    const count = model.versions.constSlice().len;
    return checkContent(model, &model.versions.slice()[@intCast(model.prng.below(count))]);
}

/// Checks all versions and layers, at the end.
pub fn checkAll(model: *StoreModel) Error!void {
    for (model.versions.slice()) |*version| try checkContent(model, version);
    for (std.enums.values(LayerKind)) |who| {
        if (!model.devices.getPtr(who).is_made) continue;
        try checkRange(
            model,
            .{ .who = who, .first = 0, .count = @intCast(model.geometry.sectorCount()) },
        );
    }
}

/// Checks what a running device reads.
pub fn checkRange(model: *StoreModel, range: Range) Error!void {
    const device = model.devices.getPtr(range.who);
    assert(device.is_open);
    var bytes: StoreModel.DiskBytes align(8) = undefined;
    var sector: usize = range.first;
    const end = @min(range.first + range.count, model.geometry.sectorCount());
    while (sector < end) {
        const count = model.runOf(sector, end - sector);
        const part = bytes[0 .. count * sector_size];
        device.layer.read(part, model.offsetOf(sector)) catch
            return model.fail("a layer cannot be read");
        for (sector..sector + count, 0..) |at, index| {
            if (store_stamps.stampOf(
                part[index * sector_size ..][0..sector_size],
            ) != device.now(at)) return model.fail("a byte of a layer is wrong");
        }
        sector += count;
    }
}

/// Checks that sectors in one piece hold these stamps.
pub fn checkSectors(
    model: *StoreModel,
    device: *StoreDevice,
    first: usize,
    stamps: []const u64,
) Error!void {
    var bytes: StoreModel.DiskBytes align(8) = undefined;
    const part = bytes[0 .. stamps.len * sector_size];
    device.layer.read(part, model.offsetOf(first)) catch |err|
        return model.failUnlessStopped(err, "a layer cannot be read beside a discard");
    for (stamps, 0..) |stamp, index|
        if (store_stamps.stampOf(part[index * sector_size ..][0..sector_size]) != stamp)
            return model.fail("a byte of a layer is wrong beside a discard");
}

pub fn checkContent(model: *StoreModel, version: *StoreModel.Version) Error!void {
    if (version.opened == null) {
        const opened = try model.environment.gpa.create(store_module.OpenVersion);
        opened.* = model.store.openVersion(version.id) catch |err| {
            model.environment.gpa.destroy(opened);
            return model.failUnlessStopped(err, "a version does not open");
        };
        version.opened = opened;
    }
    const source = version.opened.?.reader.source();
    var bytes: [block.block_size]u8 align(8) = undefined;
    var sector: usize = 0;
    while (sector < model.geometry.sectorCount()) {
        const count: usize = @min(model.geometry.sectorCount() - sector, sectors_per_block);
        const part = bytes[0 .. count * sector_size];
        source.read(part, model.offsetOf(sector)) catch |err|
            return model.failUnlessStopped(err, "a version cannot be read");
        for (version.content[sector..][0..count], 0..) |stamp, index| {
            if (store_stamps.stampOf(
                part[index * sector_size ..][0..sector_size],
            ) != stamp) return model.fail("a byte of a version is wrong");
        }
        sector += count;
    }
}

/// Checks that writes above one version are not served above another.
pub fn mustRefuse(model: *StoreModel, device: *const StoreDevice, id: Uuid) Failure!void {
    var version = try model.store.openVersion(id);
    defer version.close();
    var binding = device.binding(version.manifest.root.hash, model.geometry.diskSize());
    binding.version_id = id;
    var name: store_module.files.Name = undefined;
    const source = version.reader.source();
    var layer = WriteLayer.open(
        model.environment.gpa,
        model.sim.files(),
        device.dir(&name),
        &binding,
        source,
    ) catch |err| {
        if (err != error.AnotherVersion) return err;
        model.environment.counts.refused += 1;
        return;
    };
    layer.close(model.environment.gpa);
    return model.fail("a layer is served above another version");
}

//! Restarts the model's store after an end of the process or a power cut: everything must open
//! again with allowed content. The recovery may be interrupted itself, several times in a row.
//! Sometimes the process continues as another program, which takes the volatile layer over.

const std = @import("std");
const SimFiles = @import("../kit/sim_files.zig");
const StoreDevice = @import("device.zig");
const store_repair = @import("repair.zig");
const store_import = @import("import.zig");
const store_module = @import("store");
const store_checks = @import("checks.zig");
const StoreModel = @import("model.zig");
const store_stamps = @import("stamps.zig");
const store_operation = @import("operation.zig");
const linux = std.os.linux;

const block = store_module.block;
const Error = StoreModel.Error;
const Failure = StoreModel.Failure;
const sector_size = StoreDevice.sector_size;
const sectors_per_block = StoreDevice.sectors_per_block;
const Version = StoreModel.Version;
const LayerKind = store_operation.LayerKind;
const WriteLayer = store_module.WriteLayer;
const Handle = store_module.Files.Handle;
const Handover = store_module.LayerHandover;

/// Changing calls within which the recovery is interrupted.
const calls_max = 24;
/// Number of interrupted recoveries before one completes.
const restarts_max = 4;

/// How the process ends.
pub const End = struct {
    is_power_cut: bool,
    loss: SimFiles.Loss = .any,
    /// In the middle of an operation: nobody hands a layer over then.
    is_interrupted: bool = false,
};

/// Ends the process, and perhaps the power; then everything must open again with allowed content.
pub fn restart(model: *StoreModel, end: End) Error!void {
    const is_power_cut, const loss = .{ end.is_power_cut, end.loss };
    var is_cut = is_power_cut;
    var is_lost = is_power_cut;
    if (model.prng.chance(1, 2)) closeInOrder(model);
    var handed_over = if (is_power_cut or end.is_interrupted) null else try handOver(model);
    for (0..restarts_max + 1) |attempt| {
        model.closeAll();
        if (is_cut) try cutPower(model, loss) else {
            model.environment.counts.kills += 1;
            if (handed_over) |*handed|
                model.sim.exchangeProgram(&handed.left_open)
            else
                model.sim.endProcess();
        }
        if (attempt < restarts_max and model.prng.chance(1, 6))
            model.sim.stop_after = model.sim.operations + model.prng.below(calls_max);
        const begin_us = cpuTimeUs();
        const after: StoreDevice.RestartKind = if (is_lost) .power_cut else .end_of_process;
        const result = comeUp(model, after, if (handed_over) |handed| handed.handle else null);
        handed_over = null;
        const again = model.sim.operations >= model.sim.stop_after;
        model.sim.stop_after = std.math.maxInt(u64);
        if (!again) {
            result catch |err| return switch (err) {
                error.Violation, error.OutOfMemory, error.Stopped => |own| own,
                else => model.fail(@errorName(err)),
            };
            const took_us = cpuTimeUs() - begin_us;
            model.environment.counts.longest_opening_us = @max(
                model.environment.counts.longest_opening_us,
                took_us,
            );
            break;
        }
        if (result) |_| {} else |err| if (err == error.Violation) return error.Violation;
        model.environment.counts.restarts_cut += 1;
        is_cut = model.prng.chance(1, 2);
        is_lost = is_cut;
    } else unreachable; // The last one is not interrupted.
    if (model.prng.chance(1, 16)) return store_checks.checkAll(model);
    try store_checks.checkContent(
        model,
        &model.versions.slice()[model.versions.constSlice().len - 1],
    );
    return store_checks.checkAnyVersion(model);
}

/// Does what an edge does with layers of silent devices, and when it ends in order; it may be
/// interrupted, too.
fn closeInOrder(model: *StoreModel) void {
    // An operation was interrupted, and this is the first call after it.
    if (model.isStopped()) return;
    if (model.prng.chance(1, 3))
        model.sim.stop_after = model.sim.operations + model.prng.below(calls_max);
    for (std.enums.values(LayerKind)) |who| {
        const device = model.devices.getPtr(who);
        if (!device.is_open or device.syncing != null) continue;
        device.layer.settle(&model.environment.batches[@backingInt(who)]);
    }
    model.sim.stop_after = std.math.maxInt(u64);
}

const HandedOver = struct {
    handle: Handle,
    /// What stays open: the files of the layer as well.
    left_open: [3]Handle,
};

/// Hands the volatile layer over, which may be interrupted; null: nothing is handed over.
fn handOver(model: *StoreModel) Error!?HandedOver {
    const device = model.devices.getPtr(.fleeting);
    if (model.isStopped() or !device.is_open or device.layer.is_lost) return null;
    if (model.prng.chance(1, 2)) return null;
    const files = model.sim.files();
    if (model.prng.chance(1, 3))
        model.sim.stop_after = model.sim.operations + model.prng.below(calls_max);
    defer model.sim.stop_after = std.math.maxInt(u64);
    var handover = Handover.begin(files, "cache-handover") catch return null;
    const handle = handOverTo(&handover, &device.layer) catch {
        // Nobody would; it must not help.
        model.sim.stop_after = std.math.maxInt(u64);
        _ = Handover.Taking.begin(files, handover.handle) catch return null;
        return model.fail("an incomplete hand-over is taken");
    };
    defer {
        device.layer.map.deinit(model.environment.gpa);
        device.version.close();
        device.is_open = false;
    }
    model.environment.counts.handed_over += 1;
    return .{
        .handle = handle,
        .left_open = .{ handle, device.layer.data, device.layer.sums.?.handle },
    };
}

fn handOverTo(handover: *Handover, layer: *const WriteLayer) store_module.files.Error!Handle {
    try handover.add(layer, &@splat(7));
    return handover.end();
}

/// The next program has everything that was written to the volatile layer.
fn takeFleeting(model: *StoreModel, handle: Handle) Failure!void {
    const device = model.devices.getPtr(.fleeting);
    const gpa = model.environment.gpa;
    var taking: Handover.Taking = try .begin(model.sim.files(), handle);
    const taken = try taking.next(gpa);
    taking.end();
    device.layer = (taken orelse return model.fail("a layer was not handed over")).layer;
    device.version = model.store.openVersion(device.below) catch |err| {
        device.layer.close(gpa);
        return err;
    };
    device.layer.below = device.version.reader.source();
    device.is_open = true;
    for (0..model.geometry.sectorCount()) |sector| {
        var bytes: [sector_size]u8 align(8) = undefined;
        try device.layer.read(&bytes, model.offsetOf(sector));
        if (store_stamps.stampOf(&bytes) != device.now(sector))
            return model.fail("a write was lost when the program was exchanged");
    }
}

fn cutPower(model: *StoreModel, loss: SimFiles.Loss) Error!void {
    model.environment.counts.power_cuts += 1;
    model.sim.crashWith(loss);
    const states = model.environment.crash_states orelse return;
    _ = try states.getOrPut(std.heap.smp_allocator, model.sim.hashOfDisk());
}

fn comeUp(
    model: *StoreModel,
    after: StoreDevice.RestartKind,
    handed_over: ?Handle,
) Failure!void {
    try model.openStore();
    {
        // Finishes an interrupted change.
        var change = try model.store.lockForChange();
        change.end();
    }
    try store_repair.mend(model);
    if (model.pending) |made| {
        if (try model.isThere(made.id) or try store_import.goOn(model, made.id)) {
            model.versions.appendAssumeCapacity(made);
            model.pending = null;
            try store_checks.checkContent(
                model,
                &model.versions.slice()[model.versions.constSlice().len - 1],
            );
        }
    }
    model.pending = null;
    try store_import.forget(model);
    if (model.leaving) |id|
        if (!try model.isThere(id)) for (model.versions.slice(), 0..) |*version, index| {
            if (!version.id.eql(id)) continue;
            model.removeVersion(index);
            break;
        };
    model.leaving = null;
    try comeUpMaintenance(model, after);
    try comeUpLayer(model, .persistent, after);
    return if (handed_over) |handle| takeFleeting(model, handle) else comeUpFleeting(model);
}

fn comeUpMaintenance(model: *StoreModel, after: StoreDevice.RestartKind) Failure!void {
    const device = model.devices.getPtr(.maintenance);
    if (try model.isThere(device.version_id)) {
        // It was being sealed: it has what was flushed before.
        if (!device.isSettled()) return model.fail(
            "a version was sealed with writes that were not flushed",
        );
        var sealed: Version = .{ .id = device.version_id, .content = device.content() };
        errdefer model.closeVersion(&sealed);
        try store_checks.checkContent(model, &sealed);
        model.environment.counts.seals_finished += 1;
        return model.adopt(sealed);
    }
    comeUpLayer(model, .maintenance, after) catch |err| {
        if (err != error.Lost or model.isStopped()) return err;
        // Sealing had started: it is finished.
        if (!device.isSettled()) return model.fail("the layer is lost and was not flushed");
        try model.sealLayer();
        model.environment.counts.seals_finished += 1;
    };
}

fn comeUpLayer(model: *StoreModel, who: LayerKind, after: StoreDevice.RestartKind) Failure!void {
    const device = model.devices.getPtr(who);
    _ = model.openLayer(who) catch |err| {
        if (err != error.NotFound or !device.is_removing) return err;
        // The process that started the removal finishes it; until then a power cut may restore
        // the layer.
        try model.removeLayer(who);
        const below = model.findVersion(device.below);
        return model.beginLayer(
            who,
            (@intFromPtr(below) - @intFromPtr(model.versions.slice().ptr)) / @sizeOf(Version),
        );
    };
    device.is_removing = false;
    var bytes: [block.block_size]u8 align(8) = undefined;
    var sector: usize = 0;
    while (sector < model.geometry.sectorCount()) {
        const count: usize = @min(model.geometry.sectorCount() - sector, sectors_per_block);
        const part = bytes[0 .. count * sector_size];
        try device.layer.read(part, model.offsetOf(sector));
        for (sector..sector + count, 0..) |at, index| {
            const found = store_stamps.stampOf(part[index * sector_size ..][0..sector_size]) orelse
                return model.fail("a sector of a layer is torn");
            if (!try device.accept(
                model.environment.gpa,
                at,
                found,
                after,
            )) return model.fail("an acknowledged write is lost");
        }
        sector += count;
    }
}

/// A volatile layer ends with its process, and reports that.
fn comeUpFleeting(model: *StoreModel) Failure!void {
    const device = model.devices.getPtr(.fleeting);
    if (device.is_made) {
        var name: store_module.files.Name = undefined;
        const head = WriteLayer.readHead(model.sim.files(), device.dir(&name));
        if (head) |_|
            return model.fail("a volatile layer outlived its process")
        else |err| if (err != error.NotFound) return err;
        model.environment.counts.fleeting_lost += 1;
    }
    return model.beginLayer(.fleeting, @intCast(model.prng.below(model.versions.constSlice().len)));
}

fn cpuTimeUs() u64 {
    var ts: linux.timespec = undefined;
    _ = linux.clock_gettime(.THREAD_CPUTIME_ID, &ts);
    return @as(u64, @intCast(ts.sec)) * std.time.us_per_s +
        @as(u64, @intCast(ts.nsec)) / std.time.ns_per_us;
}

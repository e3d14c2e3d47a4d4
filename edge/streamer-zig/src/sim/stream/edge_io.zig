//! The simulated world of an edge's agent (agent/io.zig) in the stream's simulation: its network,
//! clock, disk and journal. Sends what the agent sends, and passes to the edge what the invariants
//! need. Boots begin with their stream here: no DHCP is answered, and nothing is downloaded.

const std = @import("std");
const agent = @import("agent");
const base = @import("base");
const core = @import("core");
const store = @import("store");
const wire = @import("wire").stream;
const content = @import("content.zig");
const Packing = @import("packing.zig");
const StreamBoot = @import("boot.zig");
const StreamEdge = @import("edge.zig");
const StreamSite = @import("site.zig");
const assert = std.debug.assert;
const LayerWork = agent.write_caches.LayerWork;
const ReadRequest = core.stream.Server.ReadRequest;

pub const Agent = agent.Agent(EdgeIo);

pub const EdgeIo = @This();

edge: *StreamEdge,
/// The version of each device.
versions: [StreamSite.boots_max]Version,
/// For a mutant.
reads_answered: u64 = 0,
/// The versions whose boot profile the agent has.
profiles_published: usize = 0,
packet: [wire.packet_size_max]u8 = undefined,
payload: [wire.fragment_size_max]u8 = undefined,
packing: Packing = .{},

pub const Version = struct {
    id: base.Uuid,
    disk: VersionDisk,
    layer_above: ?base.Uuid = null,
};

pub const VersionDisk = struct {
    edge: *StreamEdge,
    of: StreamBoot.Version,

    pub fn source(disk: *VersionDisk) store.BlockSource {
        return .{ .context = disk, .vtable = &.{ .read = readBlocks }, .size = disk.size() };
    }

    pub fn root(_: *const VersionDisk) [32]u8 {
        return @splat(0);
    }

    pub fn size(disk: *const VersionDisk) u64 {
        return @as(u64, disk.of.sectors) * wire.sector_size;
    }

    fn readBlocks(
        context: *anyopaque,
        buffer: []u8,
        offset: u64,
    ) store.block_source.ReadError!void {
        const disk: *const VersionDisk = @ptrCast(@alignCast(context));
        // A write of part of a block needs the rest of it.
        if (disk.edge.is_writing and disk.edge.happens(disk.edge.disk.write_errors_per_mille))
            return error.ReadFailed;
        content.fill(disk.of, offset, buffer);
    }
};

pub const Problem = enum {
    not_described,
    missing,

    pub fn isFull(_: Problem) bool {
        return false;
    }

    pub fn isGone(_: Problem) bool {
        return true;
    }

    pub fn format(_: Problem, writer: *std.Io.Writer) std.Io.Writer.Error!void {
        try writer.writeAll("the version is not in the store");
    }
};

pub fn now(io: *const EdgeIo) u64 {
    return io.edge.network.now_us;
}

pub fn unixMs(io: *const EdgeIo) u64 {
    return io.edge.site.unixMs();
}

pub fn random(io: *EdgeIo, buffer: []u8) void {
    io.edge.prng.fill(buffer);
}

pub fn log(_: *EdgeIo, comptime _: []const u8, _: anytype) void {}

pub fn send(io: *EdgeIo, port: agent.Port, to: base.Endpoint, bytes: []const u8) void {
    assert(port == .stream);
    io.edge.send(to, bytes);
}

/// Null: the version is missing now.
pub fn findVersion(io: *EdgeIo, id: base.Uuid) ?*Version {
    if (io.edge.happens(io.edge.disk.missing_per_mille)) {
        io.noteMissing(id);
        return null;
    }
    for (&io.versions) |*version| if (version.id.eql(id)) return version;
    unreachable;
}

fn noteMissing(io: *EdgeIo, id: base.Uuid) void {
    for (&io.edge.site.boots) |*boot|
        if (boot.version.id().eql(id)) boot.ends.insert(.version_missing);
}

const DesiredVersion = core.uplink.desired_state.Version;

pub fn openVersion(
    io: *EdgeIo,
    version: *const DesiredVersion,
    _: ?*const DesiredVersion,
) agent.OpenResult(Problem) {
    io.noteMissing(version.id);
    return .{ .problem = .missing };
}

pub fn readImage(
    _: *EdgeIo,
    files: store.Files,
    name: base.Uuid,
) agent.private_images.Reading {
    return .{ .version = agent.private_images.versionBelow(files, name) };
}

pub fn isDamaged(_: *const EdgeIo, _: base.Uuid) bool {
    return false;
}

pub fn storeRevision(_: *const EdgeIo) u64 {
    return 0;
}

pub fn mayOpenAhead(_: *const EdgeIo) bool {
    return false;
}

pub fn journal(io: *EdgeIo, boot: *core.boot.Boot) bool {
    // The worker has too much to do.
    if (io.edge.happens(io.edge.disk.stalls_per_mille)) return false;
    io.edge.noteBoot(boot);
    io.edge.journal.write(boot);
    return true;
}

/// For a mutant of power orders.
/// What a device never proved itself in is no boot any more.
pub fn journalFailover(io: *EdgeIo, boot: *const core.boot.Boot) void {
    io.edge.journal.forget(boot.identity.id);
}

pub fn macOfBoot(io: *const EdgeIo, id: base.Uuid) ?base.Mac {
    const boot = io.edge.journal.find(id) orelse return null;
    return boot.identity.mac;
}

pub fn sendAfterJournal(
    io: *EdgeIo,
    after: agent.Kept,
    port: agent.PromisePort,
    to: base.Endpoint,
    bytes: []const u8,
) void {
    assert(port == .stream);
    switch (after) {
        .written => io.edge.sendPromise(to, bytes),
        .synced => io.edge.sendAfterSync(to, bytes),
    }
}

pub fn sendAfterOrders(io: *EdgeIo, to: base.Endpoint, bytes: []const u8) void {
    io.send(.stream, to, bytes);
}

pub fn compactJournal(_: *EdgeIo, _: *core.boot.Table) void {}

pub fn keepsReports(_: *const EdgeIo) bool {
    return true;
}

/// `onReport` has what the invariants need.
pub fn report(_: *EdgeIo, _: agent.Report) void {}

pub fn reportBacklog(_: *const EdgeIo) u64 {
    return 0;
}

pub fn wake(_: *EdgeIo, _: base.Mac) void {}

pub fn powerHook(_: *const EdgeIo) agent.PowerHook {
    return .none;
}

pub fn startPowerHook(_: *EdgeIo, _: agent.PowerJob) void {}

pub fn takePowerResult(_: *EdgeIo) ?agent.PowerResult {
    return null;
}

pub fn isStoreShort(_: *const EdgeIo) bool {
    return false;
}

pub fn sendRouterMessage(_: *EdgeIo, _: u8, _: [16]u8, _: []const u8) void {}

pub fn setUnreadable(_: *const EdgeIo, _: bool) void {}

pub fn writeProblems(_: *const EdgeIo, _: *std.Io.Writer) std.Io.Writer.Error!void {}

pub fn keptRuns(_: *const EdgeIo) u64 {
    return 0;
}

pub fn compactSchedules(_: *EdgeIo, _: *const core.site.ScheduleRunner) void {}

pub fn isReportLogBehind(_: *const EdgeIo) bool {
    return false;
}

pub fn onBegin(_: *EdgeIo, _: *const core.boot.Boot) void {}

pub fn onReport(io: *EdgeIo, boot: *const core.boot.Boot) void {
    io.edge.noteReport(boot);
}

pub fn onVersionProblem(_: *EdgeIo, _: Problem) void {}

pub fn onSessions(io: *EdgeIo, server: *core.stream.Server) void {
    io.edge.noteSessions(server);
}

pub fn isReading(_: *EdgeIo, _: *const ReadRequest) bool {
    return false;
}

pub fn read(io: *EdgeIo, request: *const ReadRequest, arrival: agent.stream.Arrival) void {
    const edge = io.edge;
    const stream = &edge.process.?.stream;
    edge.onRead(request);
    var other: VersionDisk = undefined;
    const source = io.sourceOf(request, &other) catch |err|
        return stream.refuseRead(request, err, edge.network.now_us);
    const latency_us = edge.diskDelayUs();
    if (io.isPackable(request)) {
        const from = if (edge.mutant == .base_packed_after_write)
            io.versionOf(request).disk.source()
        else
            source;
        io.packing.is_misplaced = edge.mutant == .answer_piece_of_another_place;
        if (io.packing.answer(&edge.prng, request, &from)) |answered|
            return io.sendPacked(&answered, arrival, latency_us);
    }
    io.sendFragments(request, &source, latency_us);
    stream.onAnswered(request, arrival, edge.network.now_us, .{
        .is_cold = false,
        .storage_us = latency_us,
        .send_us = 0,
    });
}

fn sourceOf(
    io: *EdgeIo,
    request: *const ReadRequest,
    other: *VersionDisk,
) agent.stream.ReadError!store.BlockSource {
    const edge = io.edge;
    if (edge.happens(edge.disk.read_errors_per_mille)) {
        edge.statistics.store_errors += 1;
        return error.StoreError;
    }
    const version = io.versionOf(request);
    io.reads_answered += 1;
    if (edge.mutant == .another_version_read and io.reads_answered % 100 == 99) {
        other.* = version.disk;
        other.of.number += 1;
        return other.source();
    }
    if (request.write_cache == .device_ram or edge.mutant == .base_read_after_write)
        return version.disk.source();
    const layer = edge.process.?.stream.layerOf(request.boot_id) orelse return error.Lost;
    if (layer.held().state == .stopped) return error.Stopped;
    return layer.inner.source();
}

fn versionOf(io: *EdgeIo, request: *const ReadRequest) *Version {
    for (&io.versions) |*version| if (version.id.eql(request.version_id)) return version;
    unreachable;
}

/// What a device has written is never packed.
fn isPackable(io: *EdgeIo, request: *const ReadRequest) bool {
    const edge = io.edge;
    const session = edge.process.?.stream.server.findById(request.session_id) orelse return false;
    if (!request.may_pack or session.codec == 0 or request.kind == .profile) return false;
    if (!edge.prng.chance(edge.packed_percent, 100)) return false;
    if (request.write_cache == .device_ram) return true;
    if (edge.mutant == .base_packed_after_write) return true;
    const layer = edge.process.?.stream.layerOf(request.boot_id) orelse return false;
    var runs = layer.inner.runs(request.offset, request.length);
    while (runs.next()) |run| if (run.is_own) return false;
    return true;
}

fn sendPacked(
    io: *EdgeIo,
    request: *const ReadRequest,
    arrival: agent.stream.Arrival,
    after_us: u64,
) void {
    const stream = &io.edge.process.?.stream;
    var sealer = stream.server.sealer(request.session_id) orelse return;
    var fragments = request.fragments();
    while (fragments.next()) |named| {
        var header = named.header;
        if (io.edge.mutant == .packed_without_flag) header[0] &= 0xf0;
        const payload = io.packing.out[named.at..][0..named.length];
        const packet = sealer.seal(&header, payload, &io.packet);
        io.edge.sendOf(sealer.session, request.to, packet, after_us);
    }
    stream.onAnswered(request, arrival, io.edge.network.now_us, .{
        .is_cold = false,
        .storage_us = after_us,
        .send_us = 0,
    });
}

pub fn sendProfile(io: *EdgeIo, request: *const ReadRequest, document: []const u8) void {
    io.edge.onRead(request);
    var from: DocumentSource = .{ .document = document, .offset = request.offset };
    io.sendFragments(request, &from.source(), io.edge.diskDelayUs());
}

/// A part of the boot profile, read as if it lay on a disk.
const DocumentSource = struct {
    document: []const u8,
    /// Of the part in the profile.
    offset: u64,

    fn source(part: *DocumentSource) store.BlockSource {
        return .{
            .context = part,
            .vtable = &.{ .read = readBytes },
            .size = part.offset + part.document.len,
        };
    }

    fn readBytes(
        context: *anyopaque,
        buffer: []u8,
        offset: u64,
    ) store.block_source.ReadError!void {
        const part: *const DocumentSource = @ptrCast(@alignCast(context));
        @memcpy(buffer, part.document[@intCast(offset - part.offset)..][0..buffer.len]);
    }
};

/// Sends bytes of a disk or of the boot profile.
fn sendFragments(
    io: *EdgeIo,
    request: *const ReadRequest,
    source: *const store.BlockSource,
    after_us: u64,
) void {
    var sealer = io.edge.process.?.stream.server.sealer(request.session_id) orelse return;
    const count = wire.fragmentCount(request.length, request.fragment_size);
    var fragments = request.fragments();
    while (fragments.next()) |named| {
        var fragment = named;
        var offset = fragment.offset;
        switch (io.edge.mutant) {
            .last_fragment_left_out => if (fragment.index == count - 1) continue,
            .fragment_at_wrong_index => if (fragment.index == 2) {
                offset -= request.fragment_size;
            },
            .repeat_of_wrong_range => if (request.repeated and fragment.index > 0) {
                fragment.index -= 1;
                offset -= request.fragment_size;
                fragment.header =
                    wire.dataHeader(
                        request.version,
                        request.session_id,
                        request.request_id,
                        fragment.index,
                    );
                fragment.length = request.fragment_size;
            },
            .packed_unasked => fragment.header[0] |= 1,
            else => {},
        }
        const payload = io.payload[0..fragment.length];
        source.read(payload, offset) catch return;
        const packet = sealer.seal(&fragment.header, payload, &io.packet);
        io.edge.sendOf(sealer.session, request.to, packet, after_us);
    }
}

/// Boots teach nothing here: every device is handed the same bytes.
pub fn startProfileJob(_: *EdgeIo, _: agent.profiles.Job) bool {
    return false;
}

pub fn takeProfileEvent(io: *EdgeIo) ?agent.profiles.Event {
    if (io.profiles_published == io.versions.len) return null;
    const document = io.edge.gpa.alloc(u8, StreamBoot.profile_sectors * wire.sector_size) catch
        return null;
    content.fill(StreamBoot.Profile{}, 0, document);
    defer io.profiles_published += 1;
    return .{ .published = .{
        .version_id = io.versions[io.profiles_published].id,
        .key = core.profile.BootProfile.Class.any.key,
        .document = document,
    } };
}

pub fn onUsed(io: *EdgeIo, used: *const core.stream.Server.UsedUnits) void {
    for (0..used.units.count()) |index|
        io.edge.onUsed(used.boot_id, used.units.at(@intCast(index)).offset());
}

pub fn startWork(io: *EdgeIo, work: *LayerWork) void {
    io.edge.planWork(.{
        .work = work,
        .at_us = io.edge.network.now_us + io.edge.diskDelayUs(),
        .is_needed = true,
    });
}

pub fn endWorkSoon(io: *EdgeIo, work: *LayerWork) void {
    io.edge.planWork(.{ .work = work, .at_us = io.edge.network.now_us, .is_needed = false });
}

pub fn heldSubject(_: *EdgeIo) ?agent.write_caches.HoldSubject {
    return null;
}

pub fn answerHold(
    _: *EdgeIo,
    _: agent.write_caches.HoldSubject,
    _: agent.write_caches.HoldAnswer,
) void {}

pub fn snapshotOrder(_: *EdgeIo) ?agent.write_caches.SnapshotOrder {
    return null;
}

pub fn answerSnapshot(_: *EdgeIo, _: agent.write_caches.SnapshotAnswer) void {}

pub fn setWritten(_: *EdgeIo, _: *const core.uplink.store_inventory.Written) void {}

/// Its devices are behind routers.
pub fn neighbourOf(_: *const EdgeIo, _: base.Ip4) ?base.Mac {
    return null;
}

/// What a boot needs before its stream, and what is asked of an edge that has no control plane.
pub const File = void;
pub const bootFiles = notSimulated;
pub const closeFile = notSimulated;
pub const duplicateFile = notSimulated;
pub const keepLease = notSimulated;
pub const probeAddress = notSimulated;
pub const onTftpAck = notSimulated;
pub const readFile = notSimulated;
pub const sendBlocks = notSimulated;

fn notSimulated() noreturn {
    unreachable;
}

//! The simulated world of an edge's agent (agent/io.zig): the site's network, clock and disk, and a
//! journal that survives a crash. It sends the agent's packets and passes what it sees to the
//! invariants.

const std = @import("std");
const agent = @import("agent");
const base = @import("base");
const core = @import("core");
const store = @import("store");
const stream = @import("wire").stream;
const tftp = @import("wire").tftp;
const wire_dhcp = @import("wire").dhcp;
const ControlPlane = @import("control_plane.zig");
const CookieAccount = @import("../kit/cookie_account.zig");
const Disk = @import("disk.zig");
const addresses = @import("addresses.zig");
const Fabric = @import("network.zig").Network;
const Journal = @import("journal.zig");
const LogFiles = @import("log_files.zig");
const ProfileReads = @import("profile_reads.zig");
const ProfileWorld = @import("profile_world.zig");
const ReportUplink = @import("report_uplink.zig");
const Invariants = @import("invariants.zig");
const Mutant = @import("mutants.zig").Mutant;
const RouterSegment = @import("router_segment.zig");
const VersionCopies = @import("version_copies.zig");
const router_discovery = @import("wire").router_discovery;

const DesiredVersion = core.uplink.desired_state.Version;
const ReadRequest = core.stream.Server.ReadRequest;
const LayerWork = agent.write_caches.LayerWork;

pub const Agent = agent.Agent(EdgeIo);

pub const EdgeIo = @This();

const nbp_size = 61 * 1432 + 77;
const kernel_size = 300_000;
const initrd_size = 150_000;
const router_message_us = 500;

fabric: *Fabric,
/// The edge's index in the site.
edge: u8,
/// What the control plane wanted when it made the state in force; null in standalone use.
plan: ?*const ControlPlane.Plan = null,
journal_of_site: *Journal,
reports: *ReportUplink,
disk: *Disk,
prng: *base.Prng,
versions: []Version,
/// Same indexes as `versions`.
copies: *const VersionCopies,
mutant: Mutant,
/// Records of schedules' runs that a worker has not written yet; a crash loses them.
runs_pending: std.ArrayList(PendingRun) = .empty,
kept_runs: u64 = 0,
/// Who hears of magic packets.
wakes: ?Wakes = null,
account: CookieAccount = .{},
reads_answered: u64 = 0,
profile_world: ProfileWorld,
/// Null where nobody solicits a router.
routers: ?*RouterSegment = null,
/// Null where no device reads.
profile_reads: ?*ProfileReads,
/// At most one for each layer; a crash ends them.
works: base.BoundedArray(PlannedWork, 2 * layers_max) = .empty,
/// Holds the bytes of a READ that a write layer answers.
read_buffer: [stream.read_size_promised]u8 = undefined,
packet: [stream.packet_size_max]u8 = undefined,
block: [tftp.data_header_size + tftp.blksize_max]u8 = undefined,
/// These are set once the edge's process has started.
dhcp: *Agent.Dhcp = undefined,
tftp_port: *Agent.Tftp = undefined,
stream_port: *Agent.Stream = undefined,

pub const layers_max = 64;

pub const Wakes = struct {
    context: *anyopaque,
    note: *const fn (context: *anyopaque, edge: u8, mac: base.Mac) void,
};

const RunRecord = core.site.ScheduleRunner.Record;
const PendingRun = struct { record: RunRecord, at_us: u64 };
/// A disk takes so long for the sync of a run that begins.
const run_delay_us_max = 3 * std.time.us_per_s;

const PlannedWork = struct { work: *LayerWork, is_needed: bool, at_us: u64 };

pub const Version = struct {
    id: base.Uuid,
    is_open: bool,
    /// A thread opens it until then.
    open_at_us: ?u64 = null,
    disk: VersionDisk,
    layer_above: ?base.Uuid = null,
    kernel: ?VersionFile = .{ .fd = 1, .size = kernel_size },
    initrd: ?VersionFile = .{ .fd = 2, .size = initrd_size },
    disk_shortage: ?core.loader.disk_fit.Shortage = null,
    loader_files: ?core.loader.kernel_fit.Files = null,

    pub fn commandLine(_: *const Version) []const u8 {
        return "quiet";
    }
};

pub const VersionFile = struct { fd: i32, size: u64 };

pub const VersionDisk = struct {
    of: Disk.Version,

    pub fn source(disk: *VersionDisk) store.BlockSource {
        return .{ .context = disk, .vtable = &.{ .read = readBlocks }, .size = disk.of.size };
    }

    pub fn root(_: *const VersionDisk) [32]u8 {
        return @splat(0);
    }

    pub fn plainFile(_: *const VersionDisk) ?VersionFile {
        return null;
    }

    pub fn size(disk: *const VersionDisk) u64 {
        return disk.of.size;
    }

    fn readBlocks(
        context: *anyopaque,
        buffer: []u8,
        offset: u64,
    ) store.block_source.ReadError!void {
        const disk: *const VersionDisk = @ptrCast(@alignCast(context));
        Disk.fill(disk.of, offset, buffer);
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

    pub fn format(problem: Problem, writer: *std.Io.Writer) std.Io.Writer.Error!void {
        try writer.writeAll(switch (problem) {
            .not_described => "the desired state does not describe this version",
            .missing => "the version is not in the store",
        });
    }
};

pub const File = VersionFile;

/// One set of one boot program, for BIOS machines.
pub const BootFiles = struct {
    sets: []const Set = &.{.{}},

    pub const program_name = "undionly.kpxe";
    const program: [nbp_size]u8 = @splat(0);

    pub const Set = struct {
        name: []const u8 = "default",
        first: core.dhcp.Service.Programs = .{ .bios = program_name },

        pub fn find(_: *const Set, name: []const u8) ?struct { kind: enum { nbp, ipxe } = .ipxe } {
            return if (std.mem.eql(u8, name, program_name)) .{} else null;
        }
    };

    pub fn findSet(files: *const BootFiles, name: []const u8) ?*const Set {
        return if (std.mem.eql(u8, name, "default")) &files.sets[0] else null;
    }

    pub fn setFor(
        files: *const BootFiles,
        _: *const core.boot.Boot,
        _: wire_dhcp.ClientArch,
    ) ?*const Set {
        return &files.sets[0];
    }

    pub fn fileFor(
        files: *const BootFiles,
        _: ?*const core.boot.Boot,
        name: []const u8,
    ) ?[]const u8 {
        return files.find(name);
    }

    pub fn find(_: *const BootFiles, name: []const u8) ?[]const u8 {
        return if (std.mem.eql(u8, name, program_name)) &program else null;
    }
};

const boot_files: BootFiles = .{};

pub fn now(io: *const EdgeIo) u64 {
    return io.fabric.now_us;
}

pub fn unixMs(io: *const EdgeIo) u64 {
    const true_ms: i64 = @intCast(LogFiles.unix_ms_at_0 + io.fabric.now_us / std.time.us_per_ms);
    return @intCast(true_ms + io.reports.clock_offset_ms);
}

pub fn random(io: *EdgeIo, buffer: []u8) void {
    io.prng.fill(buffer);
}

pub fn log(_: *EdgeIo, comptime _: []const u8, _: anytype) void {}

pub fn send(io: *EdgeIo, port: agent.Port, to: base.Endpoint, bytes: []const u8) void {
    switch (port) {
        .dhcp => {
            io.noteBootOffer(bytes);
            io.fabric.sendToDevice(io.endpoint(addresses.dhcp_port), to, bytes, 0);
        },
        .pxe => unreachable,
        .tftp => io.fabric.sendToDevice(io.endpoint(addresses.tftp_port), to, bytes, 0),
        .stream => io.sendStream(to, bytes, 0),
        .peer => io.fabric.sendBetweenEdges(io.endpoint(addresses.peer_port), to, bytes),
    }
}

pub fn sendRouterMessage(
    io: *EdgeIo,
    _: u8,
    to: router_discovery.Address,
    bytes: []const u8,
) void {
    const fabric = io.fabric;
    const routers = io.routers orelse return;
    const at_us = fabric.now_us + router_message_us;
    if (std.mem.eql(u8, &to, &router_discovery.all_routers))
        return fabric.plan(at_us, .{ .router_question = io.edge });
    const device = routers.noteAnswer(fabric.invariants, fabric.now_us, .{
        .edge = io.edge,
        .to = to,
        .bytes = bytes,
        .is_booting = io.isBeforeSystem(router_discovery.macOf(to)),
    }) orelse return;
    fabric.plan(at_us, .{ .router_answer = device });
}

fn isBeforeSystem(io: *const EdgeIo, mac: ?base.Mac) bool {
    const table = &io.dhcp.boots.table;
    var boots = table.iterateOf(mac orelse return false);
    while (boots.next()) |ref| {
        const boot = table.get(ref).?;
        if (boot.isOver() or boot.stream_was_open or boot.files_begun) continue;
        return true;
    }
    return false;
}

fn endpoint(io: *const EdgeIo, port: u16) base.Endpoint {
    return addresses.endpoint(io.edge, port);
}

fn noteBootOffer(io: *EdgeIo, bytes: []const u8) void {
    var scratch: wire_dhcp.Scratch = undefined;
    const packet = wire_dhcp.parse(bytes, &scratch) catch return;
    const name = packet.bootFileName() orelse return;
    if (name.len == 0) return;
    const invariants = io.fabric.invariants;
    invariants.noteBootOffer(io.edge, packet.chaddr, packet.xid, io.fabric.now_us);
    const plan = io.plan orelse return;
    const device = Invariants.deviceOf(packet.chaddr) orelse return;
    invariants.noteVersionOffer(io.edge, device, plan.versionOf(device), io.fabric.now_us);
}

fn sendStream(io: *EdgeIo, to: base.Endpoint, bytes: []const u8, after_us: u64) void {
    io.account.noteAnswer(io.fabric.invariants, to, bytes);
    io.fabric.sendToDevice(io.endpoint(addresses.stream_port), to, bytes, after_us);
}

/// The site is one segment, on which nobody forges ARP. Two devices with one address: either may
/// have answered last.
pub fn neighbourOf(io: *const EdgeIo, ip: base.Ip4) ?base.Mac {
    if (addresses.attackerMacOf(ip)) |mac| return mac;
    var found: ?base.Mac = null;
    for (io.fabric.links[0..], 0..) |*link, index| {
        const known = link.ip() orelse continue;
        if (!known.eql(ip)) continue;
        if (found != null) return null;
        found = Invariants.macOf(@intCast(index));
    }
    return found;
}

/// No other machine has an address of a pool.
pub fn probeAddress(_: *EdgeIo, _: u8, _: base.Ip4) void {}

pub fn findVersion(io: *EdgeIo, id: base.Uuid) ?*Version {
    for (io.versions) |*version| if (version.is_open and version.id.eql(id)) return version;
    return null;
}

pub fn openVersion(
    io: *EdgeIo,
    described: *const DesiredVersion,
    _: ?*const DesiredVersion,
) agent.OpenResult(Problem) {
    for (io.versions, 0..) |*version, index| if (version.id.eql(described.id)) {
        if (version.is_open) return .open;
        if (io.copies.copies[index] == .absent) return .{ .problem = .missing };
        if (version.open_at_us == null) {
            const at_us = io.fabric.now_us + io.disk.latencyUs();
            version.open_at_us = at_us;
            io.fabric.plan(at_us, .{ .work_end = io.edge });
        }
        return .waits;
    };
    return .{ .problem = .not_described };
}

pub fn readImage(
    _: *EdgeIo,
    files: store.Files,
    name: base.Uuid,
) agent.private_images.Reading {
    return .{ .version = agent.private_images.versionBelow(files, name) };
}

pub fn isDamaged(io: *const EdgeIo, id: base.Uuid) bool {
    for (io.versions, &io.copies.copies) |*version, copy|
        if (version.id.eql(id)) return copy == .damaged;
    return false;
}

pub fn storeRevision(io: *const EdgeIo) u64 {
    return io.copies.revision;
}

pub fn mayOpenAhead(io: *const EdgeIo) bool {
    for (io.versions) |*version| if (version.open_at_us != null) return false;
    return true;
}

/// Threads have opened versions.
fn endOpenings(io: *EdgeIo) void {
    for (io.versions) |*version| {
        const at_us = version.open_at_us orelse continue;
        if (at_us > io.fabric.now_us) continue;
        version.open_at_us = null;
        version.is_open = true;
        io.stream_port.boots.onVersionOpened(io.fabric.now_us, version.id, null);
        io.stream_port.onVersionOpened(io.fabric.now_us);
    }
}

/// Closes versions that neither a boot nor the desired state uses, as the host does.
pub fn closeUnused(
    io: *EdgeIo,
    boots: *core.boot.Table,
    state: *const core.uplink.desired_state.DesiredState,
) void {
    for (io.versions) |*version| {
        if (core.boot.assignment.describedVersion(state, version.id) != null) continue;
        var iterator = boots.iterate();
        const is_used = while (iterator.next()) |boot| {
            if (boot.assignment.version_id.eql(version.id)) break true;
        } else false;
        if (!is_used) version.is_open = false;
    }
}

pub fn duplicateFile(_: *EdgeIo, file: *const VersionFile) error{Busy}!File {
    return file.*;
}

pub fn readFile(_: *EdgeIo, _: File, buffer: []u8, offset: u64) error{ReadFailed}!void {
    @memset(buffer, @truncate(offset >> 9));
}

pub fn closeFile(_: *EdgeIo, _: File) void {}

pub fn bootFiles(_: *const EdgeIo) *const BootFiles {
    return &boot_files;
}

pub fn journal(io: *EdgeIo, boot: *core.boot.Boot) bool {
    io.journal_of_site.write(boot);
    io.noteVersion(boot);
    return true;
}

/// Returns the device of a boot, for a mutant.
pub fn macOfBoot(io: *const EdgeIo, id: base.Uuid) ?base.Mac {
    const kept = io.journal_of_site;
    for (kept.boots[0..kept.boot_count]) |*boot|
        if (boot.identity.id.eql(id)) return boot.identity.mac;
    return null;
}

pub fn journalFailover(io: *EdgeIo, boot: *const core.boot.Boot) void {
    io.journal_of_site.remove(boot.identity.id);
    io.fabric.invariants.noteWithdrawn(boot.identity.id);
}

pub fn sendAfterJournal(
    io: *EdgeIo,
    _: agent.Kept,
    port: agent.PromisePort,
    to: base.Endpoint,
    bytes: []const u8,
) void {
    switch (port) {
        .tftp => io.send(.tftp, to, bytes),
        .stream => io.send(.stream, to, bytes),
    }
}

pub fn sendAfterOrders(io: *EdgeIo, to: base.Endpoint, bytes: []const u8) void {
    io.send(.stream, to, bytes);
}

pub fn compactJournal(_: *EdgeIo, _: *core.boot.Table) void {}

pub fn keepLease(io: *EdgeIo, _: *const core.dhcp.Leases.Record) void {
    if (io.dhcp.service.leasesOf(0)) |leases| io.journal_of_site.writeLeases(
        leases,
        io.fabric.now_us,
    );
}

pub fn keepsReports(_: *const EdgeIo) bool {
    return true;
}

pub fn wake(io: *EdgeIo, mac: base.Mac) void {
    if (io.wakes) |wakes| wakes.note(wakes.context, io.edge, mac);
}

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

pub fn setUnreadable(_: *const EdgeIo, _: bool) void {}

pub fn writeProblems(_: *const EdgeIo, _: *std.Io.Writer) std.Io.Writer.Error!void {}

/// A worker writes the record later; those given before it are written first.
pub fn runJournal(io: *EdgeIo) core.site.ScheduleRunner.Journal {
    return .{ .context = io, .write = giveRun };
}

fn giveRun(context: *anyopaque, record: RunRecord) void {
    const io: *EdgeIo = @ptrCast(@alignCast(context));
    const journal_of_site = io.journal_of_site;
    if (record == .device and !journal_of_site.hasBegun(record.device.key))
        io.fabric.invariants.violate(
            .schedules,
            "edge {d} started a device of a run that is not on its disk",
            .{io.edge},
        );
    const pending = io.runs_pending.items;
    const before_us = if (pending.len > 0) pending[pending.len - 1].at_us else io.fabric.now_us;
    const delay_us = if (record == .begun) io.prng.below(run_delay_us_max) else 0;
    io.runs_pending.append(journal_of_site.gpa, .{
        .record = record,
        .at_us = before_us + delay_us,
    }) catch @panic("no memory");
}

pub fn keptRuns(io: *EdgeIo) u64 {
    io.endRuns(io.fabric.now_us);
    return io.kept_runs;
}

/// Writes the records whose time has come.
pub fn endRuns(io: *EdgeIo, now_us: u64) void {
    var count: usize = 0;
    for (io.runs_pending.items) |pending| {
        if (pending.at_us > now_us) break;
        io.journal_of_site.writeRun(pending.record);
        io.kept_runs += @intFromBool(pending.record == .begun);
        count += 1;
    }
    io.runs_pending.replaceRangeAssumeCapacity(0, count, &.{});
}

/// The process ends.
pub fn loseRuns(io: *EdgeIo) void {
    io.endRuns(io.fabric.now_us);
    for (io.runs_pending.items) |pending| io.journal_of_site.loseRun(pending.record);
    io.runs_pending.deinit(io.journal_of_site.gpa);
}

pub fn compactSchedules(_: *EdgeIo, _: *const core.site.ScheduleRunner) void {}

/// The invariants hear of boots by `onReport`, with what the JSON does not have.
pub fn report(io: *EdgeIo, what: agent.Report) void {
    io.reports.report(what);
}

pub fn isReportLogBehind(io: *const EdgeIo) bool {
    return io.reports.process.?.log.isBehind();
}

pub fn reportBacklog(io: *const EdgeIo) u64 {
    return io.reports.process.?.log.backlog();
}

pub fn onBegin(io: *EdgeIo, boot: *const core.boot.Boot) void {
    const invariants = io.fabric.invariants;
    const index = for (io.versions, 0..) |*version, index| {
        if (version.id.eql(boot.assignment.version_id)) break index;
    } else return invariants.violate(
        .only_wanted_versions,
        "a boot of a version that never was",
        .{},
    );
    const version = io.versions[index].disk.of;
    invariants.noteBegin(io.edge, boot.identity.id, boot.identity.mac, version);
    const plan = io.plan orelse return;
    const device = Invariants.deviceOf(boot.identity.mac) orelse return;
    const wanted = plan.versionOf(device) orelse
        return invariants.violate(.only_wanted_devices, "device {d} begins to boot and is {t}", .{
            device, plan.devices[device].registration,
        });
    if (wanted != index)
        invariants.violate(.only_wanted_versions, "device {d} begins version {d}, wanted is {d}", .{
            device, index, wanted,
        });
    // A menu is shown even if its default is withdrawn; the start of that entry is refused later.
    if (plan.is_withdrawn[index] and !plan.devices[device].has_menu)
        invariants.violate(
            .only_wanted_versions,
            "device {d} begins a withdrawn version",
            .{device},
        );
    const is_owner = plan.writeOwnerOf(device) == io.edge;
    const leaves = plan.leavesToOthers(io.edge) and !is_owner and
        // None of the others has its version.
        invariants.isWholeElsewhere(@intCast(index), &plan.is_draining);
    // An attacker asks again until every edge answers, or asks one for a script.
    if (leaves and !invariants.is_attacked and invariants.hasOneEdge(device, io.fabric.now_us))
        invariants.violate(.one_edge_answers, "edge {d} drains and begins a boot", .{io.edge});
}

pub fn onReport(io: *EdgeIo, boot: *const core.boot.Boot) void {
    const invariants = io.fabric.invariants;
    io.checkReported(boot);
    invariants.noteReport(io.edge, boot);
    if (boot.isOver() or !io.isReportLogBehind()) io.reports.expect(boot);
}

/// The menu may choose another version until the boot has read from one.
fn noteVersion(io: *EdgeIo, boot: *const core.boot.Boot) void {
    if (boot.stream_was_open) return;
    const account = io.fabric.invariants.find(boot.identity.id) orelse return;
    for (io.versions) |*version| if (version.id.eql(boot.assignment.version_id)) {
        account.version = version.disk.of;
    };
}

/// A device that was heard within the last second runs.
fn checkReported(io: *EdgeIo, boot: *const core.boot.Boot) void {
    if (boot.revision > 1 or boot.stream_was_open) return;
    if (boot.suspicion) |failure| if (failure.cause == .mac_in_use) return;
    const table = &io.stream_port.boots.table;
    var others = table.iterateOf(boot.identity.mac);
    while (others.next()) |ref| {
        const other = table.get(ref).?;
        if (other.identity.id.eql(boot.identity.id) or !other.isRunning()) continue;
        if (io.fabric.now_us -| other.heardAt() < std.time.us_per_s)
            io.fabric.invariants.violate(
                .no_hint_reported,
                "a boot of {f} is reported, and the device runs",
                .{boot.identity.mac},
            );
    }
}

pub fn onVersionProblem(_: *EdgeIo, _: Problem) void {}

pub fn onSessions(_: *EdgeIo, _: *core.stream.Server) void {}

pub fn onTftpAck(_: *EdgeIo, _: u64) void {}

pub fn sendBlocks(io: *EdgeIo, blocks: *const core.tftp.Server.Blocks, now_us: u64) void {
    const catalogue = io.tftp_port.catalogue;
    var iterator = blocks.iterate();
    while (iterator.next()) |block| {
        const size = tftp.data_header_size + @as(usize, block.size);
        @memcpy(io.block[0..tftp.data_header_size], &block.header);
        const payload = io.block[tftp.data_header_size..size];
        if (catalogue.memory(blocks.source)) |bytes|
            @memcpy(payload, bytes[@intCast(block.offset)..][0..payload.len])
        else
            catalogue.read(blocks.source, payload, block.offset) catch return io.tftp_port.abort(
                blocks.to,
                now_us,
            );
        const from = io.endpoint(addresses.tftp_port);
        io.fabric.sendToDevice(from, blocks.to, io.block[0..size], 0);
    }
}

pub fn isReading(_: *EdgeIo, _: *const ReadRequest) bool {
    return false;
}

pub fn read(io: *EdgeIo, request: *const ReadRequest, arrival: agent.stream.Arrival) void {
    const now_us = io.fabric.now_us;
    if (io.profile_reads) |reads| if (request.write_cache != .edge_persistent) reads.note(request);
    if (io.disk.fails()) {
        if (io.fabric.invariants.find(request.boot_id)) |account| account.had_store_error = true;
        return io.stream_port.refuseRead(request, error.StoreError, now_us);
    }
    const latency_us = io.disk.latencyUs();
    const is_filled = io.readLayer(request) catch |err|
        return io.stream_port.refuseRead(request, err, now_us);
    const bytes = if (is_filled) io.read_buffer[0..request.length] else null;
    io.sendFragments(request, bytes, latency_us);
    const sample: core.boot.ReadTimes.ReadSample = .{
        .is_cold = false,
        .storage_us = latency_us,
        .send_us = 0,
    };
    io.stream_port.onAnswered(request, arrival, now_us, sample);
}

/// Fills `read_buffer` from the write layer of a device; returns false if it has none here.
fn readLayer(io: *EdgeIo, request: *const ReadRequest) agent.stream.ReadError!bool {
    if (request.write_cache == .device_ram) return false;
    const layer = io.stream_port.layerOf(request.boot_id) orelse return error.Lost;
    if (layer.held().state == .stopped) return error.Stopped;
    layer.inner.read(io.read_buffer[0..request.length], request.offset) catch |err|
        return if (err == error.Lost) error.Lost else error.StoreError;
    return true;
}

fn sendFragments(
    io: *EdgeIo,
    request: *const ReadRequest,
    bytes: ?[]const u8,
    after_us: u64,
) void {
    var sealer = io.stream_port.server.sealer(request.session_id) orelse return;
    io.reads_answered += 1;
    const version = io.versionServed(request);
    const last_index = stream.fragmentCount(request.length, request.fragment_size) - 1;
    var fragments = request.fragments();
    while (fragments.next()) |fragment| {
        if (io.mutant == .forget_last_fragment and fragment.index == last_index) continue;
        var offset = fragment.offset;
        if (io.mutant == .shift_fragment and fragment.index == 2) offset -= request.fragment_size;
        var payload: [stream.fragment_size_max]u8 = undefined;
        const part = payload[0..fragment.length];
        if (bytes) |filled| {
            @memcpy(part, filled[@intCast(offset - request.offset)..][0..part.len]);
        } else Disk.fill(version, offset, part);
        io.sendStream(request.to, sealer.seal(
            &fragment.header,
            payload[0..fragment.length],
            &io.packet,
        ), after_us);
    }
}

fn versionServed(io: *const EdgeIo, request: *const ReadRequest) Disk.Version {
    const is_stale = io.mutant == .stale_read and io.reads_answered % 100 == 99;
    for (io.versions) |*version|
        if (version.id.eql(request.version_id) != is_stale) return version.disk.of;
    unreachable;
}

pub fn sendProfile(io: *EdgeIo, request: *const ReadRequest, document: []const u8) void {
    if (request.offset == 0 and document.len > 0) {
        if (io.profile_reads) |reads| reads.handed += 1;
        io.checkProfile(request.version_id, document);
    }
    var sealer = io.stream_port.server.sealer(request.session_id) orelse return;
    const bytes = io.read_buffer[0..request.length];
    const size = @min(bytes.len, document.len);
    @memcpy(bytes[0..size], document[0..size]);
    @memset(bytes[size..], 0);
    var fragments = request.fragments();
    while (fragments.next()) |fragment| {
        const payload = bytes[@intCast(fragment.offset - request.offset)..][0..fragment.length];
        io.sendStream(request.to, sealer.seal(&fragment.header, payload, &io.packet), 0);
    }
}

fn checkProfile(io: *EdgeIo, version_id: base.Uuid, document: []const u8) void {
    const reads = io.profile_reads orelse return;
    const problem = reads.check(version_id, document) orelse return;
    io.fabric.invariants.violate(.profile_of_its_version, "a boot profile {s}", .{problem});
}

pub fn startProfileJob(io: *EdgeIo, job: agent.profiles.Job) bool {
    return io.profile_world.give(job);
}

pub fn takeProfileEvent(io: *EdgeIo) ?agent.profiles.Event {
    const event = io.profile_world.takeEvent() orelse return null;
    switch (event) {
        .published => |of| if (of.document.len > 0) io.checkProfile(of.version_id, of.document),
        .merged, .looked => {},
    }
    return event;
}

pub fn onUsed(_: *EdgeIo, _: *const core.stream.Server.UsedUnits) void {}

pub fn startWork(io: *EdgeIo, work: *LayerWork) void {
    io.planWork(work, true, io.disk.latencyUs());
}

pub fn endWorkSoon(io: *EdgeIo, work: *LayerWork) void {
    io.planWork(work, false, 0);
}

fn planWork(io: *EdgeIo, work: *LayerWork, is_needed: bool, after_us: u64) void {
    const at_us = io.fabric.now_us + after_us;
    io.works.append(.{ .work = work, .is_needed = is_needed, .at_us = at_us }) catch unreachable;
    io.fabric.plan(at_us, .{ .work_end = io.edge });
}

/// Ends the works of threads whose time has come.
pub fn endWorks(io: *EdgeIo) void {
    io.endOpenings();
    var index: u32 = 0;
    while (index < io.works.count) {
        if (io.works.buffer[index].at_us > io.fabric.now_us) {
            index += 1;
            continue;
        }
        const planned = io.works.swapRemove(index);
        if (planned.is_needed) planned.work.run();
        io.stream_port.endWork(planned.work, io.fabric.now_us);
    }
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

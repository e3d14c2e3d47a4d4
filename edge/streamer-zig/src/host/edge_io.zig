//! The real world as the agent asks for it (agent/io.zig): the clocks, the sockets of the packet
//! loop, the versions in the store, the journal and the report log. No policy. What this edge does
//! not have (a control plane, a data directory, boot profiles) is null here and nowhere above.

const std = @import("std");
const agent = @import("agent");
const base = @import("base");
const core = @import("core");
const store = @import("store");
const sys = @import("sys.zig");
const log_lines = @import("log.zig");
const BootFiles = @import("files/boot_files.zig");
const BootJournal = @import("files/boot_journal.zig");
const ProfileThread = @import("files/profile_thread.zig");
const ColdStart = @import("files/cold_start.zig");
const DiskWatch = @import("files/disk_watch.zig");
const health = @import("health.zig");
const EdgeSockets = @import("net/edge_sockets.zig");
const LayerHold = @import("stream/layer_hold.zig");
const LayerWorkers = @import("stream/layer_workers.zig");
const SnapshotThread = @import("stream/snapshot_thread.zig");
const LeaseFile = @import("files/lease_file.zig");
const AddressProber = @import("net/address_prober.zig");
const RouterPort = @import("net/router_port.zig");
const neighbours = @import("net/neighbours.zig");
const sockets = @import("net/sockets.zig");
const PowerHook = @import("power_hook.zig").PowerHook;
const StoreFindings = @import("files/store_findings.zig");
const PowerOrderFile = @import("files/power_order_file.zig");
const ScheduleFile = @import("files/schedule_file.zig");
const StreamReads = @import("stream/reads.zig");
const ReportWriter = @import("files/report_writer.zig");
const UdpSocket = @import("net/udp_socket.zig");
const VersionOpener = @import("files/version_opener.zig");
const version_table = @import("files/version_table.zig");
const wire = @import("wire");
const linux = std.os.linux;

const write_caches = agent.write_caches;
const DesiredVersion = core.uplink.desired_state.Version;
const ReadRequest = core.stream.Server.ReadRequest;

pub const Agent = agent.Agent(EdgeIo);

pub const EdgeIo = @This();

versions: version_table.VersionTable,
files: *const BootFiles,
/// The directory to which paths of the desired state are relative; null in standalone use.
store_fd: ?i32 = null,
/// Opens versions of the desired state; null in standalone use.
version_opener: ?*VersionOpener = null,
/// Null without a control plane.
report_log: ?*ReportWriter = null,
/// Null without a data directory.
boot_journal: ?*BootJournal = null,
lease_file: ?*LeaseFile = null,
/// Null where nothing is learned from boots.
profiles: ?*ProfileThread = null,
/// Null where no device's writes can be kept.
layer_workers: ?*LayerWorkers = null,
/// Null without a data directory and a store.
disk_watch: ?*const DiskWatch = null,
/// Null without schedules.
schedule_file: ?*ScheduleFile = null,
/// Null without a control plane.
power_order_file: ?*PowerOrderFile = null,
/// Null without `--power-hook`.
power_hook: ?*PowerHook = null,
/// Null where nobody works for the store.
hold: ?*LayerHold = null,
/// Likewise.
store_findings: ?*StoreFindings = null,
/// Null where no device's writes can be kept.
snapshots: ?*SnapshotThread = null,
/// Null in standalone use.
cold_start: ?*ColdStart = null,
listener: Listener,
/// The interfaces that devices are attached to.
interfaces: []const sockets.Interface = &.{},
/// The loop's, once it is there.
links: *@FieldType(EdgeSockets, "links") = undefined,
tftp_socket: *UdpSocket = undefined,
stream_socket: *UdpSocket = undefined,
/// Null where the site has no other edges.
peer_socket: ?*UdpSocket = null,
/// An eventfd for `awaitRecords`.
records_fd: i32 = -1,
/// By link; null where the edge leases no addresses, or cannot ask.
probers: []?AddressProber = &.{},
/// By segment of `Agent.Routers`.
router_ports: []RouterPort = &.{},
/// Where magic packets go.
wol_target: base.Endpoint = undefined,
tftp: TftpCalls = undefined,
stream: StreamCalls = undefined,

/// The calls of the agent to the TFTP port. The ports hold the agent, so this file cannot name
/// their types.
pub const TftpCalls = struct {
    context: *anyopaque,
    busy_poll: *core.tftp.BusyPoll,
    sendBlocks: *const fn (
        context: *anyopaque,
        socket: *UdpSocket,
        blocks: *const core.tftp.Server.Blocks,
        now_us: u64,
    ) void,
};

/// The calls of the agent to the stream's port.
pub const StreamCalls = struct {
    context: *anyopaque,
    reads: *StreamReads,
    syncShards: *const fn (context: *anyopaque) void,
    read: *const fn (
        context: *anyopaque,
        socket: *UdpSocket,
        request: *const ReadRequest,
        arrival: agent.stream.Arrival,
    ) void,
    sendProfile: *const fn (
        context: *anyopaque,
        socket: *UdpSocket,
        request: *const ReadRequest,
        document: []const u8,
    ) void,
};

pub const Version = version_table.Version;
pub const Problem = version_table.Problem;
/// A descriptor of its own.
pub const File = i32;

/// Whom the edge tells what its boots do.
pub const Listener = struct {
    context: *anyopaque,
    /// A boot begins: nothing has been sent to its device yet.
    begins: ?*const fn (context: *anyopaque) void = null,
    /// A boot changed; `boot.news` says how.
    reported: *const fn (context: *anyopaque, boot: *const core.boot.Boot) void,
    /// A boot cannot begin since its version cannot be opened.
    version_problem: *const fn (context: *anyopaque, problem: Problem) void,
};

pub fn deinit(io: *EdgeIo, gpa: std.mem.Allocator) void {
    io.versions.deinit(gpa);
    io.* = undefined;
}

pub fn now(_: *const EdgeIo) u64 {
    return sys.monotonicUs();
}

pub fn unixMs(_: *const EdgeIo) u64 {
    return sys.unixMs();
}

pub fn random(_: *EdgeIo, buffer: []u8) void {
    sys.random(buffer);
}

pub fn log(_: *EdgeIo, comptime format: []const u8, arguments: anytype) void {
    log_lines.info(format, arguments);
}

pub fn send(io: *EdgeIo, port: agent.Port, to: base.Endpoint, bytes: []const u8) void {
    switch (port) {
        .dhcp => |link| {
            const socket = &io.links.slice()[link].dhcp.?;
            if (io.lease_file) |file| file.send(socket, to, bytes) else socket.send(to, bytes);
        },
        .pxe => |link| io.links.slice()[link].pxe.?.send(to, bytes),
        .tftp => io.tftp_socket.send(to, bytes),
        .stream => io.stream_socket.send(to, bytes),
        .peer => io.peer_socket.?.send(to, bytes),
    }
}

pub fn sendRouterMessage(
    io: *EdgeIo,
    segment: u8,
    to: wire.router_discovery.Address,
    bytes: []const u8,
) void {
    io.router_ports[segment].send(to, bytes);
}

/// Sends a magic packet to every network: that of the device is not known yet.
pub fn wake(io: *EdgeIo, mac: base.Mac) void {
    if (!mac.isDevice()) return;
    for (io.links.slice()) |*link| link.wol.send(io.wol_target, &wire.wake_on_lan.emit(mac));
}

/// Asks the kernel, for each interface once, and waits for nothing.
pub fn neighbourOf(io: *const EdgeIo, ip: base.Ip4) ?base.Mac {
    for (io.interfaces) |*interface|
        if (neighbours.macOf(io.stream_socket.fd, interface.name(), ip)) |mac| return mac;
    return null;
}

pub fn probeAddress(io: *EdgeIo, link: u8, ip: base.Ip4) void {
    if (link >= io.probers.len) return;
    if (io.probers[link]) |*prober| prober.ask(ip);
}

pub fn findVersion(io: *EdgeIo, id: base.Uuid) ?*Version {
    return io.versions.find(id);
}

pub fn openVersion(
    io: *EdgeIo,
    described: *const DesiredVersion,
    below: ?*const DesiredVersion,
) agent.OpenResult(Problem) {
    const opener = io.version_opener orelse return .{ .problem = .not_described };
    opener.start(described, below);
    return .waits;
}

pub fn isDamaged(io: *const EdgeIo, id: base.Uuid) bool {
    return if (io.store_findings) |findings| findings.isDamaged(id) else false;
}

pub fn storeRevision(io: *const EdgeIo) u64 {
    return if (io.store_findings) |findings| findings.revision.load(.acquire) else 0;
}

pub fn readImage(
    io: *EdgeIo,
    files: store.Files,
    name: base.Uuid,
) agent.private_images.Reading {
    const opener = io.version_opener orelse
        return .{ .version = agent.private_images.versionBelow(files, name) };
    return if (opener.startImage(files, name)) .waits else .busy;
}

/// Half of the places stay free for what boots ask for.
pub fn mayOpenAhead(io: *const EdgeIo) bool {
    const opener = io.version_opener orelse return false;
    return opener.isIdle() and io.versions.freeCount() > io.versions.versions.len / 2;
}

pub fn duplicateFile(_: *EdgeIo, file: *const store.StoreFile) sys.Error!File {
    return @intCast(try sys.check(linux.fcntl(file.fd, linux.F.DUPFD_CLOEXEC, 0)));
}

pub fn readFile(_: *EdgeIo, file: File, buffer: []u8, offset: u64) error{ReadFailed}!void {
    const count = sys.readAt(file, buffer, offset) catch return error.ReadFailed;
    if (count < buffer.len) return error.ReadFailed;
}

pub fn closeFile(_: *EdgeIo, file: File) void {
    sys.close(file);
}

pub fn bootFiles(io: *const EdgeIo) *const BootFiles {
    return io.files;
}

pub fn journal(io: *EdgeIo, boot: *core.boot.Boot) bool {
    return if (io.boot_journal) |file| file.write(boot) else true;
}

pub fn sendAfterJournal(
    io: *EdgeIo,
    after: agent.Kept,
    port: agent.PromisePort,
    to: base.Endpoint,
    bytes: []const u8,
) void {
    const socket = switch (port) {
        .tftp => io.tftp_socket,
        .stream => io.stream_socket,
    };
    const file = io.boot_journal orelse return socket.send(to, bytes);
    file.writer.send(after, socket, to, bytes);
}

pub fn sendAfterOrders(io: *EdgeIo, to: base.Endpoint, bytes: []const u8) void {
    const file = io.power_order_file orelse return io.stream_socket.send(to, bytes);
    file.writer.send(.written, io.stream_socket, to, bytes);
}

/// Returns the number up to which records are not written yet; `records_fd` is written to when they
/// are. Null: there is nothing to wait for, or nobody who would say so.
pub fn awaitRecords(io: *EdgeIo) ?u64 {
    const file = io.boot_journal orelse return null;
    if (file.writer.isWritten() or !file.writer.wakeWritten(io.records_fd)) return null;
    return file.writer.given;
}

pub fn isWritten(io: *const EdgeIo, number: u64) bool {
    return io.boot_journal.?.writer.written.load(.acquire) >= number;
}

pub fn journalFailover(io: *EdgeIo, boot: *const core.boot.Boot) void {
    if (io.boot_journal) |file| file.writeWithdrawn(boot);
}

pub fn compactJournal(io: *EdgeIo, table: *core.boot.Table) void {
    if (io.boot_journal) |file| file.compact(table);
}

pub fn keepLease(io: *EdgeIo, record: *const core.dhcp.Leases.Record) void {
    if (io.lease_file) |file| file.append(record);
}

pub fn keepsReports(io: *const EdgeIo) bool {
    return io.report_log != null;
}

pub fn report(io: *EdgeIo, what: agent.Report) void {
    if (io.report_log) |file| file.append(what);
}

pub fn powerHook(io: *const EdgeIo) agent.PowerHook {
    const hook = io.power_hook orelse return .none;
    return if (hook.hasRoom()) .ready else .busy;
}

pub fn startPowerHook(io: *EdgeIo, job: agent.PowerJob) void {
    io.power_hook.?.give(job);
}

pub fn takePowerResult(io: *EdgeIo) ?agent.PowerResult {
    return if (io.power_hook) |hook| hook.take() else null;
}

pub fn keptRuns(io: *const EdgeIo) u64 {
    return if (io.schedule_file) |file| file.keptRuns() else std.math.maxInt(u64);
}

pub fn compactSchedules(io: *EdgeIo, runner: *const core.site.ScheduleRunner) void {
    if (io.schedule_file) |file| file.compact(runner);
}

pub fn isReportLogBehind(io: *const EdgeIo) bool {
    return if (io.report_log) |file| file.isBehind() else false;
}

/// Without a log there is nothing to report to: it is full.
pub fn reportBacklog(io: *const EdgeIo) u64 {
    return if (io.report_log) |file| file.backlog() else std.math.maxInt(u64);
}

pub fn onBegin(io: *EdgeIo, boot: *const core.boot.Boot) void {
    if (boot.assignment.tuning.cache == .cold)
        if (io.cold_start) |cold| cold.begin();
    if (io.listener.begins) |begins| begins(io.listener.context);
}

pub fn onReport(io: *EdgeIo, boot: *const core.boot.Boot) void {
    io.listener.reported(io.listener.context, boot);
}

pub fn onVersionProblem(io: *EdgeIo, problem: Problem) void {
    io.listener.version_problem(io.listener.context, problem);
}

pub fn onSessions(io: *EdgeIo, _: *core.stream.Server) void {
    io.stream.syncShards(io.stream.context);
}

pub fn onTftpAck(io: *EdgeIo, at_us: u64) void {
    io.tftp.busy_poll.onAnswer(at_us);
}

pub fn sendBlocks(io: *EdgeIo, blocks: *const core.tftp.Server.Blocks, now_us: u64) void {
    io.tftp.sendBlocks(io.tftp.context, io.tftp_socket, blocks, now_us);
}

pub fn isReading(io: *EdgeIo, request: *const ReadRequest) bool {
    return io.stream.reads.isWaiting(request);
}

pub fn read(io: *EdgeIo, request: *const ReadRequest, arrival: agent.stream.Arrival) void {
    io.stream.read(io.stream.context, io.stream_socket, request, arrival);
}

pub fn sendProfile(io: *EdgeIo, request: *const ReadRequest, document: []const u8) void {
    io.stream.sendProfile(io.stream.context, io.stream_socket, request, document);
}

pub fn startProfileJob(io: *EdgeIo, job: agent.profiles.Job) bool {
    return if (io.profiles) |thread| thread.give(job) else false;
}

pub fn takeProfileEvent(io: *EdgeIo) ?agent.profiles.Event {
    return if (io.profiles) |thread| thread.takeEvent() else null;
}

/// The boot and its recording have counted it.
pub fn onUsed(_: *EdgeIo, _: *const core.stream.Server.UsedUnits) void {}

pub fn startWork(io: *EdgeIo, work: *write_caches.LayerWork) void {
    // A write of a part of a block needs the rest of it.
    const version = if (work.kind == .write)
        io.versions.find(work.layer.binding.version_id)
    else
        null;
    io.layer_workers.?.start(work, if (version) |of| &of.disk else null);
}

pub fn endWorkSoon(io: *EdgeIo, work: *write_caches.LayerWork) void {
    io.layer_workers.?.endSoon(work);
}

/// Returns whether the disk of write caches is almost full.
pub fn isStoreShort(io: *const EdgeIo) bool {
    return if (io.disk_watch) |watch| watch.is_short.load(.monotonic) else false;
}

pub fn setUnreadable(_: *const EdgeIo, is_unreadable: bool) void {
    health.set(.store_damaged, is_unreadable);
}

/// Writes the names of what is wrong with the edge's disks, with commas; nothing: all is well.
pub fn writeProblems(_: *const EdgeIo, writer: *std.Io.Writer) std.Io.Writer.Error!void {
    const names = health.list();
    for (names.slice(), 0..) |name, index|
        try writer.print("{s}{s}", .{ if (index > 0) ", " else "", name });
}

pub fn heldSubject(io: *EdgeIo) ?write_caches.HoldSubject {
    return if (io.hold) |hold| hold.request() else null;
}

pub fn answerHold(
    io: *EdgeIo,
    subject: write_caches.HoldSubject,
    answer: write_caches.HoldAnswer,
) void {
    if (io.hold) |hold| hold.setAnswer(subject, answer);
}

pub fn snapshotOrder(io: *EdgeIo) ?write_caches.SnapshotOrder {
    return if (io.snapshots) |thread| thread.order() else null;
}

pub fn answerSnapshot(io: *EdgeIo, answer: write_caches.SnapshotAnswer) void {
    if (io.snapshots) |thread| thread.setAnswer(answer);
}

pub fn setWritten(io: *EdgeIo, written: *const core.uplink.store_inventory.Written) void {
    if (io.hold) |hold| hold.setWritten(written);
}

//! The world of the agent's unit tests (io.zig): time, versions and answers are what a test sets,
//! and what the agent did is counted and kept.

const std = @import("std");
const agent_io = @import("io.zig");
const base = @import("base");
const private_images = @import("private_images.zig");
const core = @import("core");
const profiles = @import("profile/profiles.zig");
const store = @import("store");
const write_caches = @import("write_caches.zig");
const router_discovery = @import("wire").router_discovery;
const DesiredVersion = core.uplink.desired_state.Version;
const Boot = core.boot.Boot;
const ReadRequest = core.stream.Server.ReadRequest;

const TestIo = @This();

now_us: u64 = 1000 * std.time.us_per_s,
unix_ms: u64 = 1_795_000_000_000,
prng: base.Prng = .init(1),
/// What is drawn instead, in each byte.
random_byte: ?u8 = null,
random_handle: ?u64 = null,
versions: base.BoundedArray(Version, 4) = .empty,
/// Opened when it is asked for; null: `problem`.
openable: ?Version = null,
problem: Problem = .unreadable,
keeps_reports: bool = true,
is_store_short: bool = false,
is_behind: bool = false,
/// The store's check has found it damaged.
damaged: ?base.Uuid = null,
store_revision: u64 = 0,
backlog: u64 = 0,
held: ?write_caches.HoldSubject = null,
answer: ?write_caches.HoldAnswer = null,
written: ?core.uplink.store_inventory.Written = null,
reading: bool = false,
sent: base.BoundedArray(Sent, 16) = .empty,
router_messages: base.BoundedArray(RouterMessage, 32) = .empty,
journaled: u32 = 0,
/// A thread opens versions: `opening` is the latest.
opens_late: bool = false,
opening: ?base.Uuid = null,
/// A thread reads heads of private images: `image` is the latest.
reads_images_late: bool = false,
image: ?base.Uuid = null,
kept_runs: u64 = std.math.maxInt(u64),
/// The worker of the journal has too much to do.
is_journal_full: bool = false,
/// What the last packet waited for.
sent_after: ?agent_io.Kept = null,
/// Packets that waited for the file of power orders.
orders_sent: u32 = 0,
journaled_failovers: u32 = 0,
compacted: u32 = 0,
begun: u32 = 0,
/// Reports of boots.
reported: u32 = 0,
withdrawn_to: ?base.Uuid = null,
waiting: u32 = 0,
waited_at_us: u64 = 0,
discovered: u32 = 0,
/// The newest report of a discovered device.
discovered_text: base.BoundedArray(u8, 1024) = .empty,
told: u32 = 0,
problems: u32 = 0,
opened: u32 = 0,
below: ?base.Uuid = null,
sessions_told: u32 = 0,
reads: u32 = 0,
last_read: ?ReadRequest = null,
profiles_sent: u32 = 0,
profile_sent_size: usize = 0,
/// The worker takes no more than these.
profile_jobs: base.BoundedArray(profiles.Job, 4) = .empty,
/// Comes next.
profile_event: ?profiles.Event = null,
used: u32 = 0,
leases: u32 = 0,
/// Run, and not ended yet.
works: base.BoundedArray(*write_caches.LayerWork, 16) = .empty,
/// Blocks of TFTP that were sent last.
blocks: ?core.tftp.Server.Blocks = null,
tftp_acks: u32 = 0,
/// Sets of boot programs that this edge has.
sets_count: u8 = 1,
open_files: i32 = 0,
woken: base.BoundedArray(base.Mac, 16) = .empty,
probed: base.BoundedArray(base.Ip4, 16) = .empty,
power_hook: agent_io.PowerHook = .none,
power_jobs: base.BoundedArray(agent_io.PowerJob, 16) = .empty,
power_result: ?agent_io.PowerResult = null,
runs_reported: u32 = 0,
/// What the neighbour table has for every address.
neighbour_mac: ?base.Mac = null,

/// Messages of router discovery.
pub const RouterMessage = struct {
    segment: u8,
    to: router_discovery.Address,
    size: u8,
    buffer: [32]u8 = undefined,

    pub fn bytes(sent: *const RouterMessage) []const u8 {
        return sent.buffer[0..sent.size];
    }
};

pub const Sent = struct {
    port: agent_io.Port,
    to: base.Endpoint,
    size: usize,
    buffer: [2048]u8 = undefined,

    pub fn bytes(sent: *const Sent) []const u8 {
        return sent.buffer[0..@min(sent.size, sent.buffer.len)];
    }
};

pub const Version = struct {
    id: base.Uuid,
    disk: Disk = .{},
    layer_above: ?base.Uuid = null,
    kernel: ?File = .{},
    initrd: ?File = null,
    disk_shortage: ?core.loader.disk_fit.Shortage = null,
    loader_files: ?core.loader.kernel_fit.Files = null,

    command_line: []const u8 = "quiet",

    pub fn commandLine(version: *const Version) []const u8 {
        return version.command_line;
    }
};

/// A disk of zeros.
pub const Disk = struct {
    bytes: u64 = 1 << 20,
    plain: ?File = null,

    pub fn plainFile(disk: *const Disk) ?File {
        return disk.plain;
    }

    pub fn source(disk: *Disk) store.BlockSource {
        return .{ .context = disk, .vtable = &.{ .read = readZeros }, .size = disk.bytes };
    }

    pub fn root(_: *const Disk) [32]u8 {
        return @splat(0);
    }

    pub fn size(disk: *const Disk) u64 {
        return disk.bytes;
    }

    fn readZeros(_: *anyopaque, buffer: []u8, _: u64) store.block_source.ReadError!void {
        @memset(buffer, 0);
    }
};

pub const Problem = enum {
    not_described,
    unreadable,
    gone,

    pub fn isFull(_: Problem) bool {
        return false;
    }

    pub fn isGone(problem: Problem) bool {
        return problem == .gone;
    }

    pub fn format(problem: Problem, writer: *std.Io.Writer) std.Io.Writer.Error!void {
        try writer.print("the version is {t}", .{problem});
    }
};

pub const File = struct { fd: i32 = 3, size: u64 = 1000 };

const program = "program";
const other_program = "other program";

/// One set of boot programs for BIOS.
pub const BootFiles = struct {
    pub const Set = struct {
        name: []const u8 = "default",
        first: core.dhcp.Service.Programs = .{ .bios = "undionly.kpxe" },

        pub fn find(set: *const Set, name: []const u8) ?struct { kind: enum { nbp, ipxe } } {
            if (!std.mem.eql(u8, name, "undionly.kpxe")) return null;
            return .{ .kind = if (std.mem.eql(u8, set.name, "default")) .ipxe else .nbp };
        }
    };

    sets: []const Set,

    pub fn find(files: *const BootFiles, name: []const u8) ?[]const u8 {
        return files.fileFor(null, name);
    }

    pub fn fileFor(_: *const BootFiles, boot: ?*const Boot, name: []const u8) ?[]const u8 {
        if (!std.mem.startsWith(u8, name, "undionly.kpxe")) return null;
        const chosen = &(boot orelse return program).assignment.program_set;
        return if (std.mem.eql(u8, chosen.slice(), "other")) other_program else program;
    }

    const all_sets = [_]Set{ .{}, .{ .name = "other" } };

    pub fn findSet(_: *const BootFiles, name: []const u8) ?*const Set {
        for (&all_sets) |*set| if (std.mem.eql(u8, set.name, name)) return set;
        return null;
    }

    pub fn setFor(files: *const BootFiles, boot: *const Boot, _: anytype) ?*const Set {
        const chosen = &boot.assignment.program_set;
        return files.findSet(if (chosen.size == 0) "default" else chosen.slice());
    }
};

pub fn now(io: *const TestIo) u64 {
    return io.now_us;
}

pub fn unixMs(io: *const TestIo) u64 {
    return io.unix_ms;
}

pub fn random(io: *TestIo, buffer: []u8) void {
    io.prng.fill(buffer);
    if (io.random_byte) |byte| @memset(buffer, byte);
    const handle = io.random_handle orelse return;
    std.mem.writeInt(u64, buffer[buffer.len - 8 ..][0..8], handle, .big);
}

pub fn log(_: *TestIo, comptime _: []const u8, _: anytype) void {}

pub fn send(io: *TestIo, port: agent_io.Port, to: base.Endpoint, bytes: []const u8) void {
    var sent: Sent = .{ .port = port, .to = to, .size = bytes.len };
    const kept = @min(bytes.len, sent.buffer.len);
    @memcpy(sent.buffer[0..kept], bytes[0..kept]);
    io.sent.appendAssumeCapacity(sent);
}

pub fn sendRouterMessage(
    io: *TestIo,
    segment: u8,
    to: router_discovery.Address,
    bytes: []const u8,
) void {
    var sent: RouterMessage = .{ .segment = segment, .to = to, .size = @intCast(bytes.len) };
    @memcpy(sent.buffer[0..bytes.len], bytes);
    io.router_messages.appendAssumeCapacity(sent);
}

pub fn findVersion(io: *TestIo, id: base.Uuid) ?*Version {
    for (io.versions.buffer[0..io.versions.count]) |*version|
        if (version.id.eql(id)) return version;
    return null;
}

pub fn isDamaged(io: *const TestIo, id: base.Uuid) bool {
    return if (io.damaged) |damaged| damaged.eql(id) else false;
}

pub fn storeRevision(io: *const TestIo) u64 {
    return io.store_revision;
}

pub fn openVersion(
    io: *TestIo,
    described: *const DesiredVersion,
    below: ?*const DesiredVersion,
) @import("io.zig").OpenResult(Problem) {
    io.opened += 1;
    io.below = if (below) |version| version.id else null;
    if (io.opens_late) {
        io.opening = described.id;
        return .waits;
    }
    io.versions.appendAssumeCapacity(io.openable orelse return .{ .problem = io.problem });
    return .open;
}

pub fn readImage(io: *TestIo, files: store.Files, name: base.Uuid) private_images.Reading {
    if (!io.reads_images_late) return .{ .version = private_images.versionBelow(files, name) };
    io.image = name;
    return .waits;
}

pub fn mayOpenAhead(io: *const TestIo) bool {
    return io.opens_late and io.opening == null;
}

pub fn bootFiles(io: *const TestIo) BootFiles {
    return .{ .sets = BootFiles.all_sets[0..io.sets_count] };
}

pub fn duplicateFile(io: *TestIo, file: *const File) error{Busy}!File {
    io.open_files += 1;
    return file.*;
}

pub fn readFile(_: *TestIo, file: File, buffer: []u8, offset: u64) error{ReadFailed}!void {
    if (offset + buffer.len > file.size) return error.ReadFailed;
    @memset(buffer, 'k');
}

pub fn closeFile(io: *TestIo, _: File) void {
    io.open_files -= 1;
}

pub fn onTftpAck(io: *TestIo, _: u64) void {
    io.tftp_acks += 1;
}

pub fn sendBlocks(io: *TestIo, blocks: *const core.tftp.Server.Blocks, _: u64) void {
    io.blocks = blocks.*;
}

pub fn journal(io: *TestIo, _: *const Boot) bool {
    if (io.is_journal_full) return false;
    io.journaled += 1;
    return true;
}

pub fn sendAfterJournal(
    io: *TestIo,
    after: agent_io.Kept,
    port: agent_io.PromisePort,
    to: base.Endpoint,
    bytes: []const u8,
) void {
    io.sent_after = after;
    switch (port) {
        .tftp => io.send(.tftp, to, bytes),
        .stream => io.send(.stream, to, bytes),
    }
}

pub fn sendAfterOrders(io: *TestIo, to: base.Endpoint, bytes: []const u8) void {
    io.orders_sent += 1;
    io.send(.stream, to, bytes);
}

pub fn journalFailover(io: *TestIo, _: *const Boot) void {
    io.journaled_failovers += 1;
}

pub fn compactJournal(io: *TestIo, _: *core.boot.Table) void {
    io.compacted += 1;
}

pub fn keepLease(io: *TestIo, _: anytype) void {
    io.leases += 1;
}

pub fn keepsReports(io: *const TestIo) bool {
    return io.keeps_reports;
}

pub fn report(io: *TestIo, what: agent_io.Report) void {
    switch (what) {
        .boot => io.reported += 1,
        .withdrawn => |withdrawn| io.withdrawn_to = withdrawn.to,
        .waiting => |waiting| {
            io.waiting += 1;
            io.waited_at_us = waiting.at_us;
        },
        .discovered => |text| {
            io.discovered += 1;
            io.discovered_text.clear();
            for (text) |byte| io.discovered_text.appendAssumeCapacity(byte);
        },
        .schedule_run => io.runs_reported += 1,
    }
}

pub fn neighbourOf(io: *const TestIo, _: base.Ip4) ?base.Mac {
    return io.neighbour_mac;
}

pub fn probeAddress(io: *TestIo, link: u8, ip: base.Ip4) void {
    std.debug.assert(link == 0);
    io.probed.appendAssumeCapacity(ip);
}

pub fn reportBacklog(io: *const TestIo) u64 {
    return io.backlog;
}

pub fn wake(io: *TestIo, mac: base.Mac) void {
    io.woken.appendAssumeCapacity(mac);
}

pub fn powerHook(io: *const TestIo) agent_io.PowerHook {
    return io.power_hook;
}

pub fn startPowerHook(io: *TestIo, job: agent_io.PowerJob) void {
    io.power_jobs.appendAssumeCapacity(job);
}

pub fn takePowerResult(io: *TestIo) ?agent_io.PowerResult {
    defer io.power_result = null;
    return io.power_result;
}

pub fn isStoreShort(io: *const TestIo) bool {
    return io.is_store_short;
}

pub fn setUnreadable(_: *TestIo, _: bool) void {}

pub fn writeProblems(io: *const TestIo, writer: *std.Io.Writer) std.Io.Writer.Error!void {
    if (io.is_store_short) try writer.writeAll("store_low_space");
}

pub fn keptRuns(io: *const TestIo) u64 {
    return io.kept_runs;
}

pub fn compactSchedules(_: *TestIo, _: *const core.site.ScheduleRunner) void {}

pub fn isReportLogBehind(io: *const TestIo) bool {
    return io.is_behind;
}

pub fn onBegin(io: *TestIo, _: *const Boot) void {
    io.begun += 1;
}

pub fn onReport(io: *TestIo, _: *const Boot) void {
    io.told += 1;
}

pub fn onVersionProblem(io: *TestIo, _: Problem) void {
    io.problems += 1;
}

pub fn onSessions(io: *TestIo, _: *const core.stream.Server) void {
    io.sessions_told += 1;
}

pub fn isReading(io: *const TestIo, _: *const ReadRequest) bool {
    return io.reading;
}

pub fn read(io: *TestIo, request: *const ReadRequest, _: anytype) void {
    io.reads += 1;
    io.last_read = request.*;
}

pub fn sendProfile(io: *TestIo, _: *const ReadRequest, document: []const u8) void {
    io.profiles_sent += 1;
    io.profile_sent_size = document.len;
}

pub fn startProfileJob(io: *TestIo, job: profiles.Job) bool {
    if (io.profile_jobs.count == io.profile_jobs.buffer.len) return false;
    io.profile_jobs.appendAssumeCapacity(job);
    return true;
}

pub fn takeProfileEvent(io: *TestIo) ?profiles.Event {
    defer io.profile_event = null;
    return io.profile_event;
}

pub fn onUsed(io: *TestIo, _: *const core.stream.Server.UsedUnits) void {
    io.used += 1;
}

/// A thread does it at once; a test says when it has ended.
pub fn startWork(io: *TestIo, work: *write_caches.LayerWork) void {
    work.run();
    io.endWorkSoon(work);
}

pub fn endWorkSoon(io: *TestIo, work: *write_caches.LayerWork) void {
    io.works.appendAssumeCapacity(work);
}

/// Returns the next work that has ended.
pub fn nextWork(io: *TestIo) ?*write_caches.LayerWork {
    return if (io.works.count == 0) null else io.works.swapRemove(0);
}

pub fn heldSubject(io: *const TestIo) ?write_caches.HoldSubject {
    return io.held;
}

pub fn answerHold(io: *TestIo, _: write_caches.HoldSubject, answer: write_caches.HoldAnswer) void {
    io.answer = answer;
}

pub fn snapshotOrder(_: *const TestIo) ?write_caches.SnapshotOrder {
    return null;
}

pub fn answerSnapshot(_: *TestIo, _: write_caches.SnapshotAnswer) void {}

pub fn setWritten(io: *TestIo, written: *const core.uplink.store_inventory.Written) void {
    io.written = written.*;
}

//! `bootfarm-sim boot`: any number of simulated devices in one event loop over real sockets.

const std = @import("std");
const base = @import("base");
const wire = @import("wire");
const core = @import("core");
const host = @import("host");
const boot_options = @import("boot_options.zig");
const boot_output = @import("boot_output.zig");
const DeviceHost = @import("device_host.zig");
const assert = std.debug.assert;
const linux = std.os.linux;
const sys = host.sys;
const sockets = host.sockets;
const Device = core.device.Device;

const trace_size_max = 8 << 20;

/// Event tokens of the program itself; a device's have its index in the low 32 bits and never 0
/// above.
const Token = enum(u64) { dhcp = 1, wake_on_lan = 2, signal = 3, timer = 4 };

const Fleet = struct {
    options: *const boot_options.Options,
    hosts: []DeviceHost,
    /// When each device's timer is due.
    deadlines_us: []u64,
    world: DeviceHost.Environment,
    wake_on_lan_fd: ?i32,
    signal_fd: i32,
    timer_fd: i32,
    out: *std.Io.Writer,
    is_stopped: bool = false,
    ready_count: u32 = 0,
    failed_count: u32 = 0,
    next_wave_at_us: u64 = 0,
    next_of_wave: u16 = 0,
    /// When the first device starts, and how many have started; not with waves or asleep.
    begun_at_us: u64 = 0,
    started: u16 = 0,
};

/// `args` are those after `boot`. Returns the exit code; a problem is one sentence on `errors`.
pub fn run(
    io: std.Io,
    gpa: std.mem.Allocator,
    args: []const [:0]const u8,
    out: *std.Io.Writer,
    errors: *std.Io.Writer,
) !u8 {
    const options = switch (boot_options.parse(args)) {
        .options => |options| options,
        .help => {
            try out.writeAll(boot_options.usage);
            return 0;
        },
        .problem => |problem| {
            try errors.print("bootfarm-sim: boot: {s} {s}; see bootfarm-sim boot --help\n", .{
                problem.argument, problem.why,
            });
            return 1;
        },
    };
    const reads = loadTrace(io, gpa, options.trace, errors) catch |err| switch (err) {
        error.Reported => return 1,
        else => return err,
    };
    defer gpa.free(reads);
    return boot(io, gpa, &options, reads, out, errors) catch |err| switch (err) {
        error.Reported => 1,
        error.SystemCallFailed, error.WouldBlock, error.Interrupted => {
            try errors.writeAll(
                "bootfarm-sim: boot: the system refused a socket; are there too many open files?\n",
            );
            return 1;
        },
        else => return err,
    };
}

fn boot(
    io: std.Io,
    gpa: std.mem.Allocator,
    options: *const boot_options.Options,
    reads: []const core.device.read_trace.Read,
    out: *std.Io.Writer,
    errors: *std.Io.Writer,
) !u8 {
    const hosts = try gpa.alloc(DeviceHost, options.devices);
    defer gpa.free(hosts);
    const deadlines_us = try gpa.alloc(u64, options.devices);
    defer gpa.free(deadlines_us);
    @memset(deadlines_us, std.math.maxInt(u64));
    for (hosts, 0..) |*device_host, index| {
        const profile: Device.Profile = .{
            .mac = .fromInt(@intCast(options.first_mac.toInt() + index)),
            .own_address = options.ownAddress(),
            .tftp_port = options.tftpPort(),
            .reads = reads,
            .speed_per_mille = options.speed_per_mille,
            .read_ahead_bytes = @as(u32, options.read_ahead_mib) << 20,
            .reads_ahead_if_told = options.read_ahead_if_told,
            .stream_version_max = options.stream_version_max,
            .breather_us = @as(u64, options.breather_ms) * std.time.us_per_ms,
            .misbehaviour = options.misbehaviour,
        };
        device_host.* =
            .{ .device = try .init(gpa, profile), .index = @intCast(index), .address = null };
    }
    defer for (hosts) |*device_host| {
        device_host.closeAll();
        device_host.device.deinit(gpa);
    };
    raiseFileLimit();
    var interface: ?host.InterfaceAddresses = null;
    if (options.interface) |name| interface = host.InterfaceAddresses.init(name) catch {
        try errors.print("bootfarm-sim: boot: there is no network interface named {s}\n", .{name});
        return error.Reported;
    };
    defer if (interface) |*added| added.removeAll();
    var fleet = try openFleet(io, options, hosts, deadlines_us, out, errors);
    if (interface) |*added| fleet.world.interface = added;
    defer closeFleet(&fleet);
    return runFleet(&fleet);
}

fn loadTrace(
    io: std.Io,
    gpa: std.mem.Allocator,
    path: ?[]const u8,
    errors: *std.Io.Writer,
) ![]core.device.read_trace.Read {
    const name = path orelse "(built in)";
    const text = if (path) |given| std.Io.Dir.cwd().readFileAlloc(
        io,
        given,
        gpa,
        .limited(trace_size_max),
    ) catch |err| {
        try errors.print("bootfarm-sim: boot: trace {s}: {t}\n", .{ given, err });
        return error.Reported;
    } else @embedFile("boot_trace_csv");
    defer if (path != null) gpa.free(text);
    var line: u32 = 0;
    return core.device.read_trace.parse(gpa, text, &line) catch |err| {
        try errors.print(
            "bootfarm-sim: boot: trace {s}, line {d}: {t}; lines are time_ms,offset,length, " ++
                "in order of time, multiples of 512, at most 128 KiB\n",
            .{ name, line, err },
        );
        return error.Reported;
    };
}

fn openFleet(
    io: std.Io,
    options: *const boot_options.Options,
    hosts: []DeviceHost,
    deadlines_us: []u64,
    out: *std.Io.Writer,
    errors: *std.Io.Writer,
) !Fleet {
    var epoll = try host.Epoll.init();
    errdefer epoll.deinit();
    const dhcp_fd = if (options.interface) |name|
        sockets.openUdpOn(name, .{ .ip = .zero, .port = wire.dhcp.client_port })
    else
        sockets.openUdp(.{ .address = .{ .ip = options.ownAddress().?, .port = 0 } });
    const opened = dhcp_fd catch |err| {
        try errors.print("bootfarm-sim: boot: the socket for DHCP: {t}\n", .{err});
        return error.Reported;
    };
    errdefer sys.close(opened);
    try epoll.add(opened, .read, @backingInt(Token.dhcp));
    const wake_on_lan_fd: ?i32 = if (options.wol_port) |port|
        sockets.openUdp(.{ .address = .{ .ip = .zero, .port = port } }) catch |err| {
            try errors.print("bootfarm-sim: boot: --wol-port {d}: {t}\n", .{ port, err });
            return error.Reported;
        }
    else
        null;
    if (wake_on_lan_fd) |fd| try epoll.add(fd, .read, @backingInt(Token.wake_on_lan));
    var compared_size: ?u64 = null;
    const verify_fd: ?i32 = if (options.verify) |path| fd: {
        const file = std.Io.Dir.cwd().openFile(io, path, .{}) catch |err| {
            try errors.print("bootfarm-sim: boot: --verify {s}: {t}\n", .{ path, err });
            return error.Reported;
        };
        if (options.other_disks) compared_size = try file.length(io);
        break :fd file.handle;
    } else null;
    const signal_fd = try openSignals();
    try epoll.add(signal_fd, .read, @backingInt(Token.signal));
    const timer_flags: linux.TFD = .{ .NONBLOCK = true, .CLOEXEC = true };
    const timer_fd: i32 = @intCast(try sys.check(linux.timerfd_create(.MONOTONIC, timer_flags)));
    try epoll.add(timer_fd, .read, @backingInt(Token.timer));
    const broadcast = options.interface != null;
    return .{
        .options = options,
        .hosts = hosts,
        .deadlines_us = deadlines_us,
        .world = .{
            .epoll = epoll,
            .dhcp_fd = opened,
            .dhcp_to = .{
                .ip = if (broadcast) .broadcast else options.server,
                .port = options.dhcp_port,
            },
            .verify_fd = verify_fd,
            .compared_size = compared_size,
            .interface = null,
        },
        .wake_on_lan_fd = wake_on_lan_fd,
        .signal_fd = signal_fd,
        .timer_fd = timer_fd,
        .out = out,
    };
}

fn closeFleet(fleet: *Fleet) void {
    for ([_]?i32{
        fleet.world.dhcp_fd,
        fleet.wake_on_lan_fd,
        fleet.world.verify_fd,
        fleet.signal_fd,
        fleet.timer_fd,
    }) |fd|
        if (fd) |open| sys.close(open);
    fleet.world.epoll.deinit();
}

fn openSignals() !i32 {
    var mask = linux.sigemptyset();
    linux.sigaddset(&mask, .TERM);
    linux.sigaddset(&mask, .INT);
    _ = linux.sigprocmask(linux.SIG.BLOCK, &mask, null);
    return @intCast(try sys.check(
        linux.signalfd(-1, &mask, linux.SFD.NONBLOCK | linux.SFD.CLOEXEC),
    ));
}

/// A device has up to three sockets.
fn raiseFileLimit() void {
    var limit = std.posix.getrlimit(.NOFILE) catch return;
    limit.cur = limit.max;
    std.posix.setrlimit(.NOFILE, limit) catch return;
}

fn runFleet(fleet: *Fleet) !u8 {
    if (!fleet.options.json) try boot_output.writeHeader(fleet.out);
    try fleet.out.flush();
    const is_endless = fleet.options.waves or fleet.options.asleep;
    fleet.begun_at_us = sys.monotonicUs();
    var tokens: [64]u64 = undefined;
    while (!fleet.is_stopped) {
        const now_us = sys.monotonicUs();
        if (fleet.options.waves and now_us >= fleet.next_wave_at_us) try startWave(fleet, now_us);
        while (nextStartUs(fleet)) |at_us| {
            if (at_us > now_us) break;
            try powerOn(fleet, fleet.started, sys.monotonicUs());
            fleet.started += 1;
        }
        for (fleet.deadlines_us, 0..) |deadline_us, index| {
            if (deadline_us <= now_us) try pump(fleet, @intCast(index), now_us);
        }
        if (!is_endless and fleet.ready_count + fleet.failed_count >= fleet.hosts.len) {
            if (!anyBusy(fleet, now_us)) return if (fleet.failed_count > 0) 1 else 0;
        }
        try setTimer(fleet);
        for (try fleet.world.epoll.wait(&tokens, -1)) |token| try dispatch(fleet, token);
    }
    return if (is_endless) 0 else 1;
}

/// When the next device starts; null: all have started, or others decide when.
fn nextStartUs(fleet: *const Fleet) ?u64 {
    if (fleet.options.waves or fleet.options.asleep) return null;
    if (fleet.started == fleet.hosts.len) return null;
    const within_us = @as(u64, fleet.options.start_within_s) * std.time.us_per_s;
    return fleet.begun_at_us + within_us * fleet.started / fleet.hosts.len;
}

/// The device is booting, or has not reported its outcome yet.
fn anyBusy(fleet: *const Fleet, now_us: u64) bool {
    for (fleet.hosts) |*device_host| {
        if (device_host.device.isBooting()) return true;
        if (device_host.device.guest.firstWordUntil()) |until_us|
            if (now_us < until_us) return true;
    }
    return false;
}

fn setTimer(fleet: *Fleet) !void {
    var earliest: u64 = std.mem.min(u64, fleet.deadlines_us);
    if (fleet.options.waves) earliest = @min(earliest, fleet.next_wave_at_us);
    if (nextStartUs(fleet)) |at_us| earliest = @min(earliest, at_us);
    // 0 would disarm it.
    const at_us = @max(earliest, 1);
    const setting: linux.itimerspec = .{
        .it_interval = .{ .sec = 0, .nsec = 0 },
        .it_value = .{
            .sec = @intCast(@min(at_us / std.time.us_per_s, std.math.maxInt(i32))),
            .nsec = @intCast(at_us % std.time.us_per_s * std.time.ns_per_us),
        },
    };
    _ = try sys.check(linux.timerfd_settime(fleet.timer_fd, .{ .ABSTIME = true }, &setting, null));
}

fn dispatch(fleet: *Fleet, token: u64) !void {
    const now_us = sys.monotonicUs();
    if (token >> 32 == 0) switch (@as(Token, @fromBackingInt(token))) {
        .dhcp => return receiveDhcp(fleet, now_us),
        .wake_on_lan => return receiveWakeOnLan(fleet, now_us),
        .signal => {
            fleet.is_stopped = true;
            return;
        },
        .timer => {
            var expirations: [8]u8 = undefined;
            _ = linux.read(fleet.timer_fd, &expirations, expirations.len);
            return;
        },
    };
    const index: u16 = @truncate(token);
    const socket: DeviceHost.Socket = @fromBackingInt(@intCast((token >> 32) - 1));
    const device_host = &fleet.hosts[index];
    device_host.ready(&fleet.world, socket, now_us);
    if (socket == .http)
        if (device_host.wantsOnlyReading()) |fd| try fleet.world.epoll.modify(fd, .read, token);
    try pump(fleet, index, now_us);
}

fn powerOn(fleet: *Fleet, index: u16, now_us: u64) !void {
    const outcome = fleet.hosts[index].powerOn(&fleet.world, now_us, fleet.options.ownAddress());
    try settle(fleet, index, outcome);
}

fn pump(fleet: *Fleet, index: u16, now_us: u64) !void {
    const outcome = fleet.hosts[index].pump(&fleet.world, now_us);
    try settle(fleet, index, outcome);
}

fn settle(fleet: *Fleet, index: u16, outcome: ?Device.Outcome) !void {
    const device_host = &fleet.hosts[index];
    if (device_host.carried_out == .restart) {
        // It was ready before, and starts a boot now.
        const at_once =
            device_host.powerOn(&fleet.world, sys.monotonicUs(), fleet.options.ownAddress());
        assert(outcome == null and at_once == null);
    }
    fleet.deadlines_us[index] = device_host.device.deadline() orelse std.math.maxInt(u64);
    const ended = outcome orelse return;
    if (ended == .ready) fleet.ready_count += 1 else fleet.failed_count += 1;
    if (fleet.options.json)
        try boot_output.writeJson(fleet.out, &device_host.device, ended, device_host.boots)
    else
        try boot_output.writeRow(fleet.out, &device_host.device, ended);
    try fleet.out.flush();
}

fn startWave(fleet: *Fleet, now_us: u64) !void {
    const interval_us = @as(u64, fleet.options.wave_interval_s) * std.time.us_per_s;
    fleet.next_wave_at_us = now_us + interval_us;
    for (0..@min(fleet.options.wave_size, fleet.hosts.len)) |_| {
        const index = fleet.next_of_wave;
        fleet.next_of_wave = @intCast((index + 1) % fleet.hosts.len);
        if (!fleet.hosts[index].device.isBooting()) try powerOn(fleet, index, now_us);
    }
}

fn receiveDhcp(fleet: *Fleet, now_us: u64) !void {
    var buffer: [2048]u8 = undefined;
    for (0..256) |_| {
        const count = sys.check(
            linux.recvfrom(fleet.world.dhcp_fd, &buffer, buffer.len, 0, null, null),
        ) catch return;
        const payload = buffer[0..count];
        var scratch: wire.dhcp.Scratch = undefined;
        const packet = wire.dhcp.parse(payload, &scratch) catch continue;
        const index = indexOf(fleet, packet.chaddr) orelse continue;
        fleet.hosts[index].device.receiveDhcp(now_us, payload);
        try pump(fleet, index, now_us);
    }
}

fn receiveWakeOnLan(fleet: *Fleet, now_us: u64) !void {
    var buffer: [256]u8 = undefined;
    for (0..256) |_| {
        const count = sys.check(
            linux.recvfrom(fleet.wake_on_lan_fd.?, &buffer, buffer.len, 0, null, null),
        ) catch return;
        const mac = wire.wake_on_lan.parse(buffer[0..count]) catch continue;
        const index = indexOf(fleet, mac) orelse continue;
        if (!fleet.hosts[index].device.isBooting()) try powerOn(fleet, index, now_us);
    }
}

fn indexOf(fleet: *const Fleet, mac: base.Mac) ?u16 {
    const first = fleet.options.first_mac.toInt();
    const value = mac.toInt();
    if (value < first or value - first >= fleet.hosts.len) return null;
    return @intCast(value - first);
}

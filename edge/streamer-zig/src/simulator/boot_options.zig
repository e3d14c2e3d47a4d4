//! Parses the command line of `bootfarm-sim boot`.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const wire = @import("wire");

pub const devices_max = 4096;

pub const usage =
    \\Usage: bootfarm-sim boot --server IP [OPTIONS]
    \\
    \\Boots simulated devices through DHCP, TFTP, HTTP and the stream, over real sockets. Ends when all
    \\devices are ready or have failed (not with --waves or --asleep), and prints the duration of each phase;
    \\the exit code is 0 if all are ready. A ready device reports simulated steps and a filling write cache
    \\every 5 s, and obeys power orders.
    \\
    \\  --server IP           address of the edge; also of DHCP without --interface
    \\  --dhcp-port N         the edge's DHCP port (default 67)
    \\  --tftp-port N         the edge's TFTP port (default: the DHCP port plus 2)
    \\  --bind IP             the devices' address if DHCP offers none (default 127.0.0.1 for a server on
    \\                        127.0.0.0/8, otherwise none)
    \\  --interface IF        broadcast DHCP on this interface from port 68; offered addresses are added to it
    \\                        while the program runs (needs root)
    \\  --devices N           number of devices (default 1, at most 4096)
    \\  --start-within-s N    starts the devices one by one, spread over N seconds (default 0: all at once)
    \\  --first-mac MAC       address of the first device; the others count up (default 02:bf:00:00:00:01)
    \\  --trace FILE          CSV time_ms,offset,length: the reads of a recorded boot (default: built in)
    \\  --speed X             divides think times by X; 0 removes them (default 1)
    \\  --read-ahead-mib N    memory for read-ahead by the boot profile; 0 disables it (default 0)
    \\  --read-ahead-if-told  use that memory only in boots whose command line says so
    \\  --stream-version N    2: devices of the release before, which offer no newer stream (default 3)
    \\  --breather-ms N       time from the loader's last byte to the stream's HELLO (default 800)
    \\  --verify FILE         compare every byte read with this disk file; a difference fails the boot
    \\  --other-disks         with --verify: a disk of another size than FILE's is another one and not compared
    \\  --waves               boot in waves until SIGTERM or SIGINT
    \\  --wave-size N         devices started together (default 3)
    \\  --wave-interval-s N   interval between waves (default 20)
    \\  --asleep              until SIGTERM or SIGINT, boot each device that gets its magic packet
    \\  --wol-port N          a magic packet to this UDP port (re)starts its device, unless it is booting
    \\  --misbehave HOW       fail on purpose: dhcp-only stops after DHCP, wrong-token shows a wrong token,
    \\                        stop-reading reads its disk once
    \\  --json                print results as JSON lines
    \\
    \\Example:
    \\  bootfarm-sim boot --server 10.0.0.1 --interface eth1 --devices 50 --json
    \\
;

pub const Options = struct {
    server: base.Ip4 = .zero,
    dhcp_port: u16 = 67,
    tftp_port: ?u16 = null,
    bind: ?base.Ip4 = null,
    interface: ?[]const u8 = null,
    devices: u16 = 1,
    start_within_s: u32 = 0,
    first_mac: base.Mac = .fromInt(0x02bf00000001),
    trace: ?[]const u8 = null,
    speed_per_mille: u32 = 1000,
    breather_ms: u32 = 800,
    read_ahead_mib: u16 = 0,
    read_ahead_if_told: bool = false,
    stream_version_max: wire.stream.Version = .newest,
    verify: ?[]const u8 = null,
    other_disks: bool = false,
    waves: bool = false,
    asleep: bool = false,
    wave_size: u16 = 3,
    wave_interval_s: u32 = 20,
    wol_port: ?u16 = null,
    json: bool = false,
    misbehaviour: core.device.Device.Misbehaviour = .none,

    /// A device's address before DHCP.
    pub fn ownAddress(options: *const Options) ?base.Ip4 {
        if (options.bind) |ip| return ip;
        if (options.interface == null and
            options.server.bytes[0] == 127) return .init(127, 0, 0, 1);
        return null;
    }

    pub fn tftpPort(options: *const Options) u16 {
        return options.tftp_port orelse options.dhcp_port +| 2;
    }
};

pub const Problem = struct { argument: []const u8, why: []const u8 };
pub const Result = union(enum) { options: Options, help, problem: Problem };

/// `args` are those after `boot`.
pub fn parse(args: []const [:0]const u8) Result {
    var options: Options = .{};
    var has_server = false;
    var index: usize = 0;
    while (index < args.len) : (index += 1) {
        const name = args[index];
        if (std.mem.eql(u8, name, "--help")) return .help;
        if (std.mem.eql(u8, name, "--waves")) {
            options.waves = true;
            continue;
        }
        if (std.mem.eql(u8, name, "--asleep")) {
            options.asleep = true;
            continue;
        }
        if (std.mem.eql(u8, name, "--read-ahead-if-told")) {
            options.read_ahead_if_told = true;
            continue;
        }
        if (std.mem.eql(u8, name, "--other-disks")) {
            options.other_disks = true;
            continue;
        }
        if (std.mem.eql(u8, name, "--json")) {
            options.json = true;
            continue;
        }
        if (index + 1 == args.len) return problem(name, "is unknown or needs a value");
        index += 1;
        has_server = has_server or std.mem.eql(u8, name, "--server");
        if (!setValue(&options, name, args[index]))
            return problem(name, "is unknown or its value does not fit");
    }
    if (!has_server) return problem("--server", "is missing");
    if (options.other_disks and options.verify == null)
        return problem("--other-disks", "needs --verify");
    if (options.asleep and options.wol_port == null) return problem("--asleep", "needs --wol-port");
    if (options.asleep and options.waves) return problem("--asleep", "does not go with --waves");
    if (options.start_within_s > 0 and (options.asleep or options.waves))
        return problem("--start-within-s", "does not go with --waves or --asleep");
    const last = @as(u64, options.first_mac.toInt()) + options.devices - 1;
    if (last > std.math.maxInt(u48))
        return problem("--first-mac", "leaves too few addresses for --devices");
    if (options.ownAddress() == null and options.interface == null)
        return problem("--bind", "or --interface is needed for a server that is not on loopback");
    return .{ .options = options };
}

fn problem(argument: []const u8, why: []const u8) Result {
    return .{ .problem = .{ .argument = argument, .why = why } };
}

fn setValue(options: *Options, name: []const u8, value: []const u8) bool {
    const Name = enum {
        server,
        @"dhcp-port",
        @"tftp-port",
        bind,
        interface,
        devices,
        @"first-mac",
        trace,
        speed,
        @"breather-ms",
        @"read-ahead-mib",
        @"stream-version",
        verify,
        @"start-within-s",
        @"wave-size",
        @"wave-interval-s",
        @"wol-port",
        misbehave,
    };
    const bare = std.mem.cutPrefix(u8, name, "--") orelse return false;
    switch (std.meta.stringToEnum(Name, bare) orelse return false) {
        .server => options.server = base.Ip4.parse(value) catch return false,
        .bind => options.bind = base.Ip4.parse(value) catch return false,
        .@"dhcp-port" => options.dhcp_port = number(u16, value, 1, 65535) orelse return false,
        .@"tftp-port" => options.tftp_port = number(u16, value, 1, 65535) orelse return false,
        .@"wol-port" => options.wol_port = number(u16, value, 1, 65535) orelse return false,
        .devices => options.devices = number(u16, value, 1, devices_max) orelse return false,
        .@"start-within-s" => options.start_within_s = number(u32, value, 0, 86_400) orelse
            return false,
        .@"wave-size" => options.wave_size = number(u16, value, 1, devices_max) orelse return false,
        .@"wave-interval-s" => options.wave_interval_s = number(u32, value, 1, 86_400) orelse
            return false,
        .@"read-ahead-mib" => options.read_ahead_mib = number(u16, value, 0, 1024) orelse
            return false,
        .@"stream-version" => options.stream_version_max =
            std.enums.fromInt(wire.stream.Version, number(u4, value, 2, 3) orelse return false).?,
        .@"breather-ms" => options.breather_ms = number(u32, value, 0, 600_000) orelse return false,
        .@"first-mac" => {
            options.first_mac = base.Mac.parse(value) catch return false;
            return options.first_mac.isDevice();
        },
        .speed => {
            const speed = std.fmt.parseFloat(f64, value) catch return false;
            if (!(speed >= 0 and speed <= 1_000_000)) return false;
            options.speed_per_mille = @trunc(speed * 1000);
        },
        .interface => {
            if (value.len == 0 or value.len >= std.os.linux.IFNAMESIZE) return false;
            options.interface = value;
        },
        .misbehave => options.misbehaviour = misbehaviour(value) orelse return false,
        .trace => options.trace = value,
        .verify => options.verify = value,
    }
    return true;
}

fn misbehaviour(text: []const u8) ?core.device.Device.Misbehaviour {
    const Word = enum { @"dhcp-only", @"wrong-token", @"stop-reading" };
    return switch (std.meta.stringToEnum(Word, text) orelse return null) {
        .@"dhcp-only" => .dhcp_only,
        .@"wrong-token" => .wrong_token,
        .@"stop-reading" => .stop_reading,
    };
}

fn number(comptime T: type, text: []const u8, least: T, most: T) ?T {
    const value = std.fmt.parseInt(T, text, 10) catch return null;
    return if (value < least or value > most) null else value;
}

const testing = std.testing;

test "options are parsed, and wrong ones are named" {
    const good = parse(
        &.{
            "--server",
            "127.0.0.1",
            "--dhcp-port",
            "10067",
            "--devices",
            "6",
            "--speed",
            "2.5",
            "--stream-version",
            "2",
            "--waves",
            "--read-ahead-if-told",
        },
    );
    try testing.expect(good.options.read_ahead_if_told);
    try testing.expectEqual(2500, good.options.speed_per_mille);
    try testing.expectEqual(.v2, good.options.stream_version_max);
    try testing.expectEqual(10069, good.options.tftpPort());
    try testing.expect(good.options.ownAddress().?.eql(.init(127, 0, 0, 1)));
    const cases = [_]struct { []const [:0]const u8, []const u8 }{
        .{ &.{}, "--server" },
        .{ &.{ "--server", "10.0.0.1" }, "--bind" },
        .{ &.{"--server"}, "--server" },
        .{ &.{ "--server", "127.0.0.1", "--devices", "0" }, "--devices" },
        .{ &.{ "--server", "127.0.0.1", "--speed", "-1" }, "--speed" },
        .{ &.{ "--server", "127.0.0.1", "--stream-version", "4" }, "--stream-version" },
        .{ &.{ "--server", "127.0.0.1", "--first-mac", "01:00:00:00:00:00" }, "--first-mac" },
        .{ &.{ "--server", "127.0.0.1", "--x", "1" }, "--x" },
        .{ &.{ "--server", "127.0.0.1", "--asleep" }, "--asleep" },
        .{
            &.{ "--server", "127.0.0.1", "--waves", "--start-within-s", "9" },
            "--start-within-s",
        },
        .{ &.{ "--server", "127.0.0.1", "--misbehave", "well" }, "--misbehave" },
    };
    for (cases) |case| try testing.expectEqualStrings(case[1], parse(case[0]).problem.argument);
    try testing.expect(parse(&.{"--help"}) == .help);
    const spread = parse(&.{ "--server", "127.0.0.1", "--start-within-s", "60" });
    try testing.expectEqual(60, spread.options.start_within_s);
}

//! The settings that `bootfarm-target` needs to open its stream: words that the edge's boot script
//! put on the kernel's command line. The program accepts the same words as arguments.

const std = @import("std");
const base = @import("base");
const clear_word = @import("../stream/seal.zig").clear_word;
const LocalDisk = @import("local_disk_order.zig");
const LostDisk = @import("lost_disk.zig");
const Tuning = @import("tuning.zig");

pub const TargetOptions = @This();

edge: base.Endpoint,
boot_id: base.Uuid,
token: [token_size]u8,
read_ahead: ReadAhead = .by_memory,
/// The edge serves its disks in clear text.
clear: bool = false,
codec: Codec = .auto,
/// A READ requests at most this many bytes; null: as many as the system reads at once.
read_limit: ?u32 = null,
/// UDP payload that the stream may use; null: what the card and the path take.
packet_size_max: ?u16 = null,
/// Writes that do not fit memory go to the local disk.
local_disk: ?LocalDisk = null,
/// What the machine does when its disk is lost for good.
lost: LostDisk.Policy = .default,
/// n of /dev/nbdn; null: a free one.
disk_index: ?u32 = null,

pub const ReadAhead = Tuning.ReadAhead;
pub const Codec = Tuning.Codec;

const token_size = 16;

/// One for each mistake in the words; `explain` has a sentence for people.
pub const Error = Tuning.Error || error{
    EdgeMissing,
    EdgeInvalid,
    BootMissing,
    BootInvalid,
    TokenMissing,
    TokenInvalid,
    OverflowInvalid,
    LostInvalid,
    DiskInvalid,
};

/// `text` is a kernel command line: words separated by spaces; the last one of a kind counts,
/// and other words are ignored.
pub fn parse(text: []const u8) Error!TargetOptions {
    var edge: ?[]const u8 = null;
    var boot: ?[]const u8 = null;
    var token: ?[]const u8 = null;
    var overflow: ?[]const u8 = null;
    var lost: ?[]const u8 = null;
    var disk: ?[]const u8 = null;
    var tuning: Tuning = .{};
    var clear = false;
    var words = std.mem.tokenizeAny(u8, text, " \t\r\n");
    while (words.next()) |word| {
        if (std.mem.cutPrefix(u8, word, "bootfarm.edge=")) |value| edge = value;
        if (std.mem.cutPrefix(u8, word, "bootfarm.boot=")) |value| boot = value;
        if (std.mem.cutPrefix(u8, word, "bootfarm.token=")) |value| token = value;
        if (std.mem.cutPrefix(u8, word, LocalDisk.word)) |value| overflow = value;
        if (std.mem.cutPrefix(u8, word, LostDisk.word)) |value| lost = value;
        if (std.mem.cutPrefix(u8, word, "bootfarm.disk=")) |value| disk = value;
        if (std.mem.eql(u8, word, clear_word)) {
            clear = true;
        } else if (std.mem.startsWith(u8, word, "bootfarm.stream=")) {
            return error.StreamInvalid;
        } else if (std.mem.cutPrefix(u8, word, "bootfarm.")) |setting|
            _ = try tuning.take(setting);
    }
    const edge_value = base.Endpoint.parse(edge orelse return error.EdgeMissing) catch
        return error.EdgeInvalid;
    if (!edge_value.ip.isUnicast()) return error.EdgeInvalid;
    return .{
        .edge = edge_value,
        .boot_id = base.Uuid.parse(boot orelse return error.BootMissing) catch
            return error.BootInvalid,
        .token = try parseToken(token orelse return error.TokenMissing),
        .read_ahead = tuning.read_ahead orelse .by_memory,
        .clear = clear,
        .codec = tuning.codec orelse .auto,
        .read_limit = tuning.read_limit,
        .packet_size_max = tuning.packetSize(),
        .local_disk = if (overflow) |value| LocalDisk.parse(value) orelse
            return error.OverflowInvalid else null,
        .lost = if (lost) |value| LostDisk.Policy.parse(value) orelse
            return error.LostInvalid else .default,
        .disk_index = if (disk) |value| try parseDisk(value) else null,
    };
}

fn parseToken(text: []const u8) Error![token_size]u8 {
    var token: [token_size]u8 = undefined;
    if (text.len != 2 * token_size) return error.TokenInvalid;
    _ = std.fmt.hexToBytes(&token, text) catch return error.TokenInvalid;
    return token;
}

fn parseDisk(text: []const u8) Error!u32 {
    const digits = std.mem.cutPrefix(u8, text, "nbd") orelse return error.DiskInvalid;
    if (digits.len == 0 or digits.len > 2) return error.DiskInvalid;
    for (digits) |digit| if (!std.ascii.isDigit(digit)) return error.DiskInvalid;
    return std.fmt.parseInt(u32, digits, 10) catch unreachable; // Two digits.
}

pub fn explain(reason: Error) []const u8 {
    return switch (reason) {
        error.EdgeMissing => "bootfarm.edge=IP:PORT is not on the kernel's command line; " ++
            "was this device booted by an edge?",
        error.EdgeInvalid => "bootfarm.edge= on the kernel's command line is not an IPv4 " ++
            "address and a port",
        error.BootMissing => "bootfarm.boot=UUID is not on the kernel's command line",
        error.BootInvalid => "bootfarm.boot= on the kernel's command line is not a UUID",
        error.TokenMissing => "bootfarm.token=HEX is not on the kernel's command line",
        error.ReadAheadInvalid => "bootfarm.read-ahead= on the kernel's command line is not " ++
            "auto, off or 1m to 256m",
        error.StreamInvalid => "bootfarm.stream= on the kernel's command line is clear, or " ++
            "not there",
        error.CodecInvalid => "bootfarm.codec= on the kernel's command line is not auto, lz4 " ++
            "or off",
        error.ReadLimitInvalid => "bootfarm.read-limit= on the kernel's command line is not off " ++
            "or a multiple of 4k up to 128k",
        error.MtuInvalid => "bootfarm.mtu= on the kernel's command line is not 576 to 9000",
        error.CacheInvalid => "bootfarm.cache= on the kernel's command line is not cold or warm",
        error.OverflowInvalid => "bootfarm.overflow= on the kernel's command line is not as " ++
            "this program knows it; build the initramfs anew",
        error.LostInvalid => "bootfarm.lost= on the kernel's command line is not wait, restart, " ++
            "or restart,SECONDS with 5 to 86400 seconds",
        error.DiskInvalid => "bootfarm.disk= on the kernel's command line is not nbd0 to nbd99",
        error.TokenInvalid => "bootfarm.token= on the kernel's command line is not 32 " ++
            "hexadecimal digits",
    };
}

const testing = std.testing;
const good = "bootfarm.edge=10.77.0.1:6910 bootfarm.boot=00112233-4455-4677-8899-aabbccddeeff " ++
    "bootfarm.token=000102030405060708090a0b0c0d0e0f";

test "the edge's words are found among others" {
    const options: TargetOptions = try .parse("console=ttyS0 quiet " ++ good ++ " initrd=initrd\n");
    try testing.expectEqual(6910, options.edge.port);
    try testing.expectEqual(0x0a, options.token[10]);
    try testing.expect(options.boot_id.eql(try .parse("00112233-4455-4677-8899-aabbccddeeff")));
}

test "the size of the read-ahead can be set, or turned off" {
    try testing.expectEqual(.by_memory, (try TargetOptions.parse(good)).read_ahead);
    try testing.expectEqual(
        .off,
        (try TargetOptions.parse(good ++ " bootfarm.read-ahead=off")).read_ahead,
    );
    try testing.expectEqual(
        64 << 20,
        (try TargetOptions.parse(good ++ " bootfarm.read-ahead=64m")).read_ahead.bytes,
    );
}

test "a read's size and a packet's size can be limited" {
    const free: TargetOptions = try .parse(good);
    try testing.expectEqual(null, free.read_limit);
    try testing.expectEqual(null, free.packet_size_max);
    const limited: TargetOptions = try .parse(good ++ " bootfarm.read-limit=32k bootfarm.mtu=1400");
    try testing.expectEqual(32 << 10, limited.read_limit);
    try testing.expectEqual(1372, limited.packet_size_max);
}

test "the stream is in clear text only if the edge says so" {
    try testing.expect(!(try TargetOptions.parse(good)).clear);
    try testing.expect((try TargetOptions.parse(good ++ " bootfarm.stream=clear")).clear);
}

test "a machine restarts when its disk is lost, unless the command line says otherwise" {
    try testing.expectEqual(60, (try TargetOptions.parse(good)).lost.restart_after_s);
    try testing.expectEqual(
        9,
        (try TargetOptions.parse("bootfarm.lost=wait " ++ good ++ " bootfarm.lost=restart,9"))
            .lost.restart_after_s,
    );
    try testing.expectEqual(.wait, (try TargetOptions.parse(good ++ " bootfarm.lost=wait")).lost);
}

test "answers may be packed as the machine's speed says, always or never" {
    try testing.expectEqual(.auto, (try TargetOptions.parse(good)).codec);
    for (std.enums.values(Codec)) |codec| {
        var buffer: [300]u8 = undefined;
        const text = try std.mem.print(&buffer, good ++ " bootfarm.codec={t}", .{codec});
        try testing.expectEqual(codec, (try TargetOptions.parse(text)).codec);
    }
}

test "the disk is a free nbd device, or the one that the command line names" {
    try testing.expectEqual(null, (try TargetOptions.parse(good)).disk_index);
    try testing.expectEqual(8, (try TargetOptions.parse(good ++ " bootfarm.disk=nbd8")).disk_index);
}

test "the last word of a kind counts" {
    const options: TargetOptions = try .parse(good ++ " bootfarm.edge=10.0.0.9:1");
    try testing.expectEqual(1, options.edge.port);
}

test "each wrong word has its own error and sentence" {
    const cases = [_]struct { text: []const u8, reason: TargetOptions.Error }{
        .{ .text = "", .reason = error.EdgeMissing },
        .{ .text = good ++ " bootfarm.edge=", .reason = error.EdgeInvalid },
        .{ .text = good ++ " bootfarm.edge=255.255.255.255:1", .reason = error.EdgeInvalid },
        .{ .text = "bootfarm.edge=1.2.3.4:5", .reason = error.BootMissing },
        .{ .text = good ++ " bootfarm.boot=1", .reason = error.BootInvalid },
        .{
            .text = good[0..std.mem.find(u8, good, " bootfarm.token").?],
            .reason = error.TokenMissing,
        },
        .{ .text = good ++ "00", .reason = error.TokenInvalid },
        .{ .text = good ++ " bootfarm.codec=zstd", .reason = error.CodecInvalid },
        .{ .text = good ++ " bootfarm.read-ahead=64", .reason = error.ReadAheadInvalid },
        .{ .text = good ++ " bootfarm.read-ahead=0m", .reason = error.ReadAheadInvalid },
        .{ .text = good ++ " bootfarm.read-ahead=257m", .reason = error.ReadAheadInvalid },
        .{ .text = good ++ " bootfarm.read-limit=5k", .reason = error.ReadLimitInvalid },
        .{ .text = good ++ " bootfarm.mtu=70000", .reason = error.MtuInvalid },
        .{ .text = good ++ " bootfarm.cache=hot", .reason = error.CacheInvalid },
        .{ .text = good ++ " bootfarm.overflow=tape,stop", .reason = error.OverflowInvalid },
        .{ .text = good ++ " bootfarm.stream=open", .reason = error.StreamInvalid },
        .{ .text = good ++ " bootfarm.lost=halt", .reason = error.LostInvalid },
        .{ .text = good ++ " bootfarm.disk=sda", .reason = error.DiskInvalid },
        .{ .text = good ++ " bootfarm.disk=nbd", .reason = error.DiskInvalid },
        .{ .text = good ++ " bootfarm.disk=nbd100", .reason = error.DiskInvalid },
        .{ .text = good ++ " bootfarm.disk=nbd+1", .reason = error.DiskInvalid },
        .{
            .text = good ++ " bootfarm.token=g0010203040506070809x0b0c0d0e0f0",
            .reason = error.TokenInvalid,
        },
    };
    for (cases) |case| {
        try testing.expectError(case.reason, TargetOptions.parse(case.text));
        try testing.expect(TargetOptions.explain(case.reason).len > 0);
    }
}

//! Settings of the stream that an edge gives to a boot beside its version's command line: those of
//! the device's collection, or those of an experiment (docs/decisions/0108-tuning-lab.md). The
//! desired state names them by the same words that the kernel's command line has after `bootfarm.`.

const std = @import("std");
const stream = @import("wire").stream;

pub const Tuning = @This();

read_ahead: ?ReadAhead = null,
codec: ?Codec = null,
/// A READ requests at most this many bytes; null: as many as the system reads at once.
read_limit: ?u32 = null,
/// IP packet size that the stream may use, in bytes; null: what the card and the path take.
mtu: ?u16 = null,
/// Null: as the edge was started. An edge that was not started with clear text has none.
protection: ?Protection = null,
/// Cold: before the boot the edge forgets what its memory holds of the version.
cache: ?Cache = null,

/// Memory for read-ahead by the boot profile.
pub const ReadAhead = union(enum) {
    /// A share of the machine's memory.
    by_memory,
    off,
    bytes: u32,
};

/// Whether the edge may pack its answers.
pub const Codec = enum {
    /// If this machine unpacks faster than its network delivers.
    auto,
    lz4,
    off,
};

pub const Protection = enum { sealed, clear };
pub const Cache = enum { cold, warm };

pub const Error = error{
    ReadAheadInvalid,
    CodecInvalid,
    ReadLimitInvalid,
    MtuInvalid,
    StreamInvalid,
    CacheInvalid,
};

const read_limit_unit = 4 << 10;
const mtu_min = stream.packet_size_min + header_size;
const mtu_max = stream.packet_size_max + header_size;
/// Of IPv4 and UDP, without options.
const header_size = 28;
/// Of `format`: one word of each kind that a device takes.
pub const text_size_max = " bootfarm.read-ahead=256m bootfarm.codec=auto".len +
    " bootfarm.read-limit=128k bootfarm.mtu=9000".len;

/// Takes `name=value`; returns false for a name that is none of these.
pub fn take(tuning: *Tuning, setting: []const u8) Error!bool {
    const name, const value = std.mem.cutScalar(u8, setting, '=') orelse return false;
    const Name = enum { @"read-ahead", codec, @"read-limit", mtu, stream, cache };
    switch (std.meta.stringToEnum(Name, name) orelse return false) {
        .@"read-ahead" => tuning.read_ahead = try parseReadAhead(value),
        .codec => tuning.codec = std.meta.stringToEnum(Codec, value) orelse
            return error.CodecInvalid,
        .@"read-limit" => tuning.read_limit = try parseReadLimit(value),
        .mtu => {
            const mtu = std.fmt.parseInt(u16, value, 10) catch return error.MtuInvalid;
            if (mtu < mtu_min or mtu > mtu_max) return error.MtuInvalid;
            tuning.mtu = mtu;
        },
        .stream => tuning.protection = std.meta.stringToEnum(Protection, value) orelse
            return error.StreamInvalid,
        .cache => tuning.cache = std.meta.stringToEnum(Cache, value) orelse
            return error.CacheInvalid,
    }
    return true;
}

/// Returns null if one of the settings is unknown here, or invalid.
pub fn ofAll(settings: []const []const u8) ?Tuning {
    var tuning: Tuning = .{};
    for (settings) |setting| if (!(tuning.take(setting) catch false)) return null;
    return tuning;
}

/// Leaves out what is unknown here, or invalid.
pub fn ofKnown(settings: []const []const u8) Tuning {
    var tuning: Tuning = .{};
    for (settings) |setting| _ = tuning.take(setting) catch false;
    return tuning;
}

/// UDP payload that the stream may use.
pub fn packetSize(tuning: *const Tuning) ?u16 {
    return (tuning.mtu orelse return null) - header_size;
}

/// Writes the words of the device for the kernel's command line, each with a space before it.
pub fn format(tuning: Tuning, writer: *std.Io.Writer) std.Io.Writer.Error!void {
    if (tuning.read_ahead) |wanted| switch (wanted) {
        .by_memory => try writer.writeAll(" bootfarm.read-ahead=auto"),
        .off => try writer.writeAll(" bootfarm.read-ahead=off"),
        .bytes => |bytes| try writer.print(" bootfarm.read-ahead={d}m", .{bytes >> 20}),
    };
    if (tuning.codec) |codec| try writer.print(" bootfarm.codec={t}", .{codec});
    if (tuning.read_limit) |bytes|
        try writer.print(" bootfarm.read-limit={d}k", .{bytes >> 10});
    if (tuning.mtu) |mtu| try writer.print(" bootfarm.mtu={d}", .{mtu});
}

fn parseReadAhead(text: []const u8) Error!ReadAhead {
    if (std.mem.eql(u8, text, "auto")) return .by_memory;
    if (std.mem.eql(u8, text, "off")) return .off;
    const digits = std.mem.cutSuffix(u8, text, "m") orelse return error.ReadAheadInvalid;
    const mebibytes = std.fmt.parseInt(u32, digits, 10) catch return error.ReadAheadInvalid;
    if (mebibytes < 1 or mebibytes > 256) return error.ReadAheadInvalid;
    return .{ .bytes = mebibytes << 20 };
}

fn parseReadLimit(text: []const u8) Error!?u32 {
    if (std.mem.eql(u8, text, "off")) return null;
    const digits = std.mem.cutSuffix(u8, text, "k") orelse return error.ReadLimitInvalid;
    const kibibytes = std.fmt.parseInt(u32, digits, 10) catch return error.ReadLimitInvalid;
    if (kibibytes > stream.read_size_promised >> 10) return error.ReadLimitInvalid;
    const bytes = kibibytes << 10;
    if (bytes == 0 or bytes % read_limit_unit != 0) return error.ReadLimitInvalid;
    return bytes;
}

const testing = std.testing;

test "settings are written as the words by which they are read" {
    const settings = [_][]const u8{ "read-ahead=64m", "codec=off", "read-limit=44k", "mtu=1500" };
    const tuning = ofAll(&settings).?;
    try testing.expectEqual(64 << 20, tuning.read_ahead.?.bytes);
    try testing.expectEqual(44 << 10, tuning.read_limit);
    try testing.expectEqual(1472, tuning.packetSize());
    var buffer: [text_size_max]u8 = undefined;
    try testing.expectEqualStrings(
        " bootfarm.read-ahead=64m bootfarm.codec=off bootfarm.read-limit=44k bootfarm.mtu=1500",
        try std.mem.print(&buffer, "{f}", .{tuning}),
    );
    const longest = ofAll(&.{ "read-ahead=256m", "codec=auto", "read-limit=128k", "mtu=9000" }).?;
    try testing.expectEqual(
        text_size_max,
        (try std.mem.print(&buffer, "{f}", .{longest})).len,
    );
    const auto = ofAll(&.{ "read-ahead=auto", "read-limit=off" }).?;
    try testing.expectEqualStrings(
        " bootfarm.read-ahead=auto",
        try std.mem.print(&buffer, "{f}", .{auto}),
    );
}

test "what the edge does for a boot is no word of its device" {
    const tuning = ofAll(&.{ "stream=clear", "cache=cold" }).?;
    try testing.expectEqual(.clear, tuning.protection);
    try testing.expectEqual(.cold, tuning.cache);
    var buffer: [8]u8 = undefined;
    try testing.expectEqualStrings("", try std.mem.print(&buffer, "{f}", .{tuning}));
}

test "a setting that is unknown or invalid makes all of them unusable, or is left out" {
    for ([_][]const u8{
        "shards=4",            "codec",         "codec=zstd",    "read-ahead=64", "read-ahead=0m",
        "read-ahead=257m",     "read-limit=0k", "read-limit=6k", "mtu=575",       "read-limit=132k",
        "read-limit=44",       "mtu=9001",      "mtu=",          "stream=open",   "cache=hot",
        "read-limit=4194304k", "mtu=-1",        "",
    }) |wrong| {
        const settings = [_][]const u8{ "codec=off", wrong };
        try testing.expectEqual(null, ofAll(&settings));
        try testing.expectEqual(Tuning{ .codec = .off }, ofKnown(&settings));
    }
}

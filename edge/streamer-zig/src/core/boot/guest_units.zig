//! A device's own account of the start of its units, of systemd: those that took longest, and the
//! chain of those that waited for one another up to the end of the boot, the last one first. The
//! edge takes any bytes for one, and `Units.parse` accepts nothing beyond the limits below.

const std = @import("std");
const base = @import("base");

pub const magic = "BFUNITS1";
pub const slowest_max = 32;
pub const chain_max = 24;
pub const name_size_max = 64;
const unit_size_max = 1 + name_size_max + 16;
pub const size_max = magic.len + 2 + (slowest_max + chain_max) * unit_size_max;
/// A larger time is damage.
const us_max = 7 * std.time.us_per_day;

pub const Unit = struct {
    /// 1 to `name_size_max` bytes.
    name: []const u8,
    /// µs since the kernel's start, when its start began.
    start_us: u64,
    /// Until it was active.
    duration_us: u64,
};

/// `slowest` and `chain` have at most `slowest_max` and `chain_max` units; more are left out.
pub fn write(slowest: []const Unit, chain: []const Unit, buffer: *[size_max]u8) []const u8 {
    var writer: base.ByteWriter = .init(buffer);
    const first = slowest[0..@min(slowest.len, slowest_max)];
    const links = chain[0..@min(chain.len, chain_max)];
    writer.bytes(magic) catch unreachable;
    writer.int(u8, @intCast(first.len)) catch unreachable;
    writer.int(u8, @intCast(links.len)) catch unreachable;
    for ([_][]const Unit{ first, links }) |list| for (list) |*unit| {
        const name = unit.name[0..@min(unit.name.len, name_size_max)];
        writer.int(u8, @intCast(name.len)) catch unreachable;
        writer.bytes(name) catch unreachable;
        writer.int(u64, @min(unit.start_us, us_max)) catch unreachable;
        writer.int(u64, @min(unit.duration_us, us_max)) catch unreachable;
    };
    return writer.written();
}

/// A device's account, checked; names point into its bytes.
pub const Units = struct {
    slowest: base.BoundedArray(Unit, slowest_max) = .empty,
    chain: base.BoundedArray(Unit, chain_max) = .empty,

    pub fn parse(bytes: []const u8) error{Malformed}!Units {
        if (!std.mem.startsWith(u8, bytes, magic)) return error.Malformed;
        var cursor: base.Cursor = .init(bytes[magic.len..]);
        const slowest_count = cursor.int(u8) catch return error.Malformed;
        const chain_count = cursor.int(u8) catch return error.Malformed;
        if (slowest_count > slowest_max or chain_count > chain_max) return error.Malformed;
        var units: Units = .{};
        for (0..slowest_count) |_| units.slowest.appendAssumeCapacity(try readUnit(&cursor));
        for (0..chain_count) |_| units.chain.appendAssumeCapacity(try readUnit(&cursor));
        return if (cursor.remaining() == 0) units else error.Malformed;
    }

    fn readUnit(cursor: *base.Cursor) error{Malformed}!Unit {
        const size = cursor.int(u8) catch return error.Malformed;
        if (size == 0 or size > name_size_max) return error.Malformed;
        const unit: Unit = .{
            .name = cursor.bytes(size) catch return error.Malformed,
            .start_us = cursor.int(u64) catch return error.Malformed,
            .duration_us = cursor.int(u64) catch return error.Malformed,
        };
        if (unit.start_us > us_max or unit.duration_us > us_max) return error.Malformed;
        return unit;
    }
};

const testing = std.testing;

test "units survive a round trip, and no other bytes are units" {
    const unit: Unit = .{ .name = "ssh.service", .start_us = 5_000_000, .duration_us = 70 };
    const chain: [chain_max + 3]Unit = @splat(unit);
    var buffer: [size_max]u8 = undefined;
    const bytes = write(&.{ unit, unit }, &chain, &buffer);
    const units: Units = try .parse(bytes);
    try testing.expectEqual(2, units.slowest.count);
    try testing.expectEqual(chain_max, units.chain.count);
    try testing.expectEqualDeep(unit, units.chain.constSlice()[chain_max - 1]);
    for (0..bytes.len) |size| try testing.expectError(error.Malformed, Units.parse(bytes[0..size]));
    var prng: base.Prng = .init(5);
    var copy: [size_max]u8 = undefined;
    for (0..20_000) |_| {
        @memcpy(copy[0..bytes.len], bytes);
        for (0..3) |_| copy[prng.below(bytes.len)] = @truncate(prng.below(256));
        const parsed = Units.parse(copy[0..bytes.len]) catch continue;
        for (parsed.slowest.constSlice()) |*found| try testing.expect(found.start_us <= us_max);
    }
}

//! The boot profile of a version: which blocks its boots read, in order, merged over boots. A
//! block's weight says how many of the last boots read it, a unit's place is its mean place in
//! their order. Blocks that are no longer read fade out. The same boots in the same order always
//! give the same profile, and its size is bounded.

const std = @import("std");
const base = @import("base");
const profile = @import("wire").stream.profile;
const Trace = @import("trace.zig");
const assert = std.debug.assert;
const Sha256 = base.Sha256;

pub const BootProfile = @This();

/// Boots that count; an earlier one's share has faded to a third by then.
pub const memory_boots = 16;
/// Blocks that fewer than about a quarter of the boots read are not read ahead.
const weight_handed = 60;
/// Of 255: a block with less is forgotten.
const weight_kept = 8;
/// A profile carried over from another version counts as at most this many boots, so that changes
/// are learned soon.
const carried_boots_max = 2;
/// The last instant that JavaScript can represent, ECMA-262 "Time Values and Time Range".
pub const unix_ms_max = 8_640_000_000_000_000;

units: [profile.units_max]Unit = undefined,
count: u16 = 0,
/// Boots merged in total.
boots: u32 = 0,
/// How many boots it counts as; at most `memory_boots`.
age: u8 = 0,
/// The version that it was carried over from; zero: none.
carried_from: base.Uuid = .zero,
/// When a boot was last merged, by the edge's clock; 0: never.
learned_unix_ms: u64 = 0,

pub const Unit = struct {
    index: u40,
    /// Mean place in the order of the boots: 0 the first, 65535 the last.
    place: u16,
    /// Per block; 255: every boot read it.
    weights: [profile.unit_blocks]u8,

    fn heaviest(unit: *const Unit) u8 {
        return std.mem.max(u8, &unit.weights);
    }

    /// Returns the blocks that are sent to devices.
    pub fn handed(unit: *const Unit) u8 {
        var blocks: u8 = 0;
        for (unit.weights, 0..) |weight, block| {
            if (weight >= weight_handed) blocks |= @as(u8, 1) << @intCast(block);
        }
        return blocks;
    }
};

pub fn slice(of: *const BootProfile) []const Unit {
    return of.units[0..of.count];
}

/// Bytes that are sent to devices.
pub fn handedBytes(of: *const BootProfile) u64 {
    var bytes: u64 = 0;
    for (of.slice()) |*unit| bytes += @as(u64, @popCount(unit.handed())) * profile.block_size;
    return bytes;
}

/// Merges one more boot, which was ready at `unix_ms`. `scratch` holds the merged units meanwhile.
pub fn merge(of: *BootProfile, units: []const profile.Unit, unix_ms: u64, scratch: *Scratch) void {
    assert(units.len <= profile.units_max);
    const age: u32 = @min(@as(u32, of.age) + 1, memory_boots);
    const news = scratch.news[0..units.len];
    for (news, units, 0..) |*item, unit, index| item.* = .{
        .unit = unit,
        .place = @intCast(index * 65535 / @max(1, units.len - 1)),
    };
    std.mem.sortUnstable(New, news, {}, New.isBefore);
    std.mem.sortUnstable(Unit, of.units[0..of.count], {}, isBeforeOnDisk);
    const total = zip(of.slice(), news, &scratch.units, age);
    var merged = scratch.units[0..total];
    if (merged.len > profile.units_max) {
        std.mem.sortUnstable(Unit, merged, {}, isMoreWanted);
        merged = merged[0..profile.units_max];
    }
    std.mem.sortUnstable(Unit, merged, {}, isReadBefore);
    assert(merged.len <= profile.units_max);
    @memcpy(of.units[0..merged.len], merged);
    of.count = @intCast(merged.len);
    of.age = @intCast(age);
    of.boots +|= 1;
    of.learned_unix_ms = @min(unix_ms, unix_ms_max);
}

pub const Scratch = struct { units: [2 * profile.units_max]Unit, news: [profile.units_max]New };

const New = struct {
    unit: profile.Unit,
    place: u16,

    fn isBefore(_: void, a: New, b: New) bool {
        return a.unit.index < b.unit.index;
    }
};

/// Both are in the order of the disk, without duplicate indexes.
fn zip(old: []const Unit, news: []const New, into: *[2 * profile.units_max]Unit, age: u32) usize {
    var total: usize = 0;
    var at: usize = 0;
    var new_at: usize = 0;
    while (at < old.len or new_at < news.len) {
        const takes_old =
            at < old.len and (new_at == news.len or old[at].index <= news[new_at].unit.index);
        const takes_new =
            new_at < news.len and (at == old.len or news[new_at].unit.index <= old[at].index);
        const blocks = if (takes_new) news[new_at].unit.blocks else 0;
        var unit: Unit = if (takes_old) old[at] else .{
            .index = news[new_at].unit.index,
            .place = news[new_at].place,
            .weights = @splat(0),
        };
        if (takes_new) unit.place = @intCast(towards(unit.place, news[new_at].place, age));
        for (&unit.weights, 0..) |*weight, block| {
            const is_wanted = blocks >> @intCast(block) & 1 == 1;
            weight.* = @intCast(towards(weight.*, if (is_wanted) 255 else 0, age));
            if (weight.* < weight_kept) weight.* = 0;
        }
        if (takes_old) at += 1;
        if (takes_new) new_at += 1;
        if (unit.heaviest() == 0) continue;
        into[total] = unit;
        total += 1;
    }
    return total;
}

/// Moves a mean of `age` values towards `new`, the last of them; rounded towards it, so that it is
/// reached.
fn towards(mean: u32, new: u32, age: u32) u32 {
    if (new >= mean) return mean + (new - mean + age - 1) / age;
    return mean - (mean - new + age - 1) / age;
}

fn isBeforeOnDisk(_: void, a: Unit, b: Unit) bool {
    return a.index < b.index;
}

fn isReadBefore(_: void, a: Unit, b: Unit) bool {
    return if (a.place != b.place) a.place < b.place else a.index < b.index;
}

fn isMoreWanted(_: void, a: Unit, b: Unit) bool {
    if (a.heaviest() != b.heaviest()) return a.heaviest() > b.heaviest();
    return isReadBefore({}, a, b);
}

/// Carries this profile over to another version. `drop` removes the blocks that changed there.
pub fn carry(of: *BootProfile, from: base.Uuid) void {
    of.carried_from = from;
    of.age = @min(of.age, carried_boots_max);
    of.boots = 0;
    of.learned_unix_ms = 0;
}

/// Removes blocks of the disk that have changed, from `first` on.
pub fn drop(of: *BootProfile, first: u64, blocks: u64) void {
    const end = first +| blocks;
    var kept: u16 = 0;
    for (of.units[0..of.count]) |*unit| {
        const begin = @as(u64, unit.index) * profile.unit_blocks;
        for (&unit.weights, begin..) |*weight, block| {
            if (block >= first and block < end) weight.* = 0;
        }
        if (unit.heaviest() == 0) continue;
        of.units[kept] = unit.*;
        kept += 1;
    }
    assert(kept <= of.count);
    of.count = kept;
}

/// Writes the profile for devices: the document of STREAM.md. Its size is 0 if there is nothing to
/// send.
pub fn document(of: *const BootProfile, out: *[profile.document_size_max]u8) []u8 {
    @memset(out, 0);
    var count: u16 = 0;
    for (of.slice()) |*unit| {
        const blocks = unit.handed();
        if (blocks == 0) continue;
        const at = profile.head_size + @as(usize, count) * profile.entry_size;
        profile.Unit.encode(
            .{ .index = unit.index, .blocks = blocks },
            out[at..][0..profile.entry_size],
        );
        count += 1;
    }
    if (count == 0) return out[0..0];
    const whole = out[0..profile.documentSize(count)];
    profile.seal(whole, count);
    return whole;
}

/// A class of hardware that boots alike, as far as an edge can tell, and its name for people.
pub const Class = struct {
    key: u64,
    name: base.UntrustedText,

    /// All boots of a version.
    pub const any: Class = .{ .key = 0, .name = .init("any") };
};

const magic = "BFPROF2\n".*;
const head_size = magic.len + 16 + 8 + 1 + base.UntrustedText.size_max + 4 + 1 + 16 + 8 + 2;
const unit_size = 5 + 2 + profile.unit_blocks;
pub const file_size_max = head_size + profile.units_max * unit_size + Sha256.digest_length;

pub const Named = struct { version: base.Uuid, class: Class };

/// Writes the form kept on disk.
pub fn encode(of: *const BootProfile, named: *const Named, out: *[file_size_max]u8) []u8 {
    var writer: base.ByteWriter = .init(out);
    encodeInto(of, named, &writer) catch unreachable; // The buffer holds the largest.
    const size = writer.position;
    Sha256.hash(out[0..size], out[size..][0..Sha256.digest_length], .{});
    return out[0 .. size + Sha256.digest_length];
}

fn encodeInto(of: *const BootProfile, named: *const Named, writer: *base.ByteWriter) !void {
    var name: [base.UntrustedText.size_max]u8 = @splat(0);
    const text = named.class.name.slice();
    @memcpy(name[0..text.len], text);
    try writer.bytes(&magic);
    try writer.bytes(&named.version.bytes);
    try writer.int(u64, named.class.key);
    try writer.int(u8, @intCast(text.len));
    try writer.bytes(&name);
    try writer.int(u32, of.boots);
    try writer.int(u8, of.age);
    try writer.bytes(&of.carried_from.bytes);
    try writer.int(u64, of.learned_unix_ms);
    try writer.int(u16, of.count);
    for (of.slice()) |*unit| {
        try writer.int(u40, unit.index);
        try writer.int(u16, unit.place);
        try writer.bytes(&unit.weights);
    }
}

/// `Damaged`: not what was written. `Foreign`: of something else, or of a newer program.
pub const DecodeError = error{ Damaged, Foreign };

/// Reads the output of `encode`; the caller checks which version it belongs to.
pub fn decode(of: *BootProfile, bytes: []const u8) DecodeError!Named {
    if (bytes.len < magic.len or !std.mem.eql(u8, bytes[0..magic.len], &magic))
        return error.Foreign;
    if (bytes.len < head_size + Sha256.digest_length or bytes.len > file_size_max)
        return error.Damaged;
    const size = bytes.len - Sha256.digest_length;
    var digest: [Sha256.digest_length]u8 = undefined;
    Sha256.hash(bytes[0..size], &digest, .{});
    if (!std.mem.eql(u8, &digest, bytes[size..])) return error.Damaged;
    var cursor: base.Cursor = .init(bytes[magic.len..size]);
    return decodeFrom(of, &cursor) catch error.Damaged;
}

fn decodeFrom(of: *BootProfile, cursor: *base.Cursor) !Named {
    const version: base.Uuid = .fromBytes((try cursor.array(16)).*);
    const key = try cursor.int(u64);
    const name_size = try cursor.int(u8);
    const name = try cursor.array(base.UntrustedText.size_max);
    if (name_size > name.len) return error.Damaged;
    of.* = .{ .boots = try cursor.int(u32), .age = try cursor.int(u8) };
    if (of.age > memory_boots) return error.Damaged;
    of.carried_from = .fromBytes((try cursor.array(16)).*);
    of.learned_unix_ms = try cursor.int(u64);
    if (of.learned_unix_ms > unix_ms_max) return error.Damaged;
    const count = try cursor.int(u16);
    if (count > profile.units_max or cursor.remaining() != @as(usize, count) * unit_size)
        return error.Damaged;
    for (of.units[0..count]) |*unit| unit.* = .{
        .index = try cursor.int(u40),
        .place = try cursor.int(u16),
        .weights = (try cursor.array(profile.unit_blocks)).*,
    };
    of.count = count;
    assert(of.count <= profile.units_max);
    assert(of.age <= memory_boots);
    return .{ .version = version, .class = .{ .key = key, .name = .init(name[0..name_size]) } };
}

test {
    _ = @import("profile_test.zig");
}

//! Reads the text in which LVM2 describes a volume group (lvm2, doc/ and man lvmsystemid,
//! lib/format_text): sections, numbers, strings and lists. Only what locates logical volumes is
//! kept. The text comes from a disk: nesting and counts are limited, and nothing recurses.

const std = @import("std");
const Allocator = std.mem.Allocator;

/// Nested sections: group, volumes, volume, segment.
const depth_max = 8;
const physical_max = 64;
pub const logical_max = 128;
pub const segments_max = 1024;
const name_size_max = 127;

pub const Error = error{ Damaged, TooLarge, OutOfMemory };

pub const Physical = struct {
    name: []const u8,
    /// 32 characters without dashes, as in the label of a physical volume.
    id: [32]u8 = @splat(0),
    /// Sectors of 512 bytes to the first extent.
    first_sector: u64 = 0,
    extent_count: u64 = 0,
};

pub const Kind = enum { linear, striped, raid, thin, cache, snapshot, other };

pub const Segment = struct {
    /// Extents of the logical volume.
    first: u64 = 0,
    count: u64 = 0,
    kind: Kind = .other,
    stripe_count: u64 = 1,
    /// The physical volume and its extent.
    physical: []const u8 = "",
    physical_first: u64 = 0,
};

pub const Logical = struct {
    name: []const u8,
    is_visible: bool = false,
    /// Of `Group.segments`.
    segments_first: usize,
    segments_count: usize = 0,
};

/// Names point into the text.
pub const Group = struct {
    name: []const u8 = "",
    /// Sectors of 512 bytes; a power of two or a multiple of 128 KiB, never 0.
    extent_sectors: u64 = 0,
    physicals: []Physical,
    logicals: []Logical,
    segments: []Segment,
};

const Token = union(enum) {
    word: []const u8,
    string: []const u8,
    number: u64,
    symbol: u8,
    end,
};

const Tokens = struct {
    text: []const u8,
    at: usize = 0,

    fn next(tokens: *Tokens) Error!Token {
        tokens.skipBlanks();
        const rest = tokens.text[tokens.at..];
        if (rest.len == 0 or rest[0] == 0) return .end;
        switch (rest[0]) {
            '{', '}', '[', ']', '=', ',' => {
                tokens.at += 1;
                return .{ .symbol = rest[0] };
            },
            '"' => {
                var index: usize = 1;
                while (index < rest.len and rest[index] != '"') : (index += 1)
                    if (rest[index] == '\\') {
                        index += 1;
                    };
                if (index >= rest.len) return error.Damaged;
                tokens.at += index + 1;
                return .{ .string = rest[1..index] };
            },
            else => {},
        }
        const size = for (rest, 0..) |byte, index| {
            if (!std.ascii.isAlphanumeric(byte) and std.mem.findScalar(u8, "_-.+", byte) == null)
                break index;
        } else rest.len;
        if (size == 0) return error.Damaged;
        tokens.at += size;
        const word = rest[0..size];
        if (std.fmt.parseInt(u64, word, 10) catch null) |number| return .{ .number = number };
        return .{ .word = word };
    }

    fn skipBlanks(tokens: *Tokens) void {
        while (tokens.at < tokens.text.len) : (tokens.at += 1) {
            const byte = tokens.text[tokens.at];
            if (byte == '#') {
                tokens.at = std.mem.findScalarPos(u8, tokens.text, tokens.at, '\n') orelse {
                    tokens.at = tokens.text.len;
                    return;
                };
                continue;
            }
            if (!std.ascii.isWhitespace(byte)) return;
        }
    }
};

/// The first values of an assignment; a single value is a list of one.
const Values = struct {
    string: []const u8 = "",
    number: u64 = 0,
    has_visible: bool = false,
};

const Reader = struct {
    tokens: Tokens,
    path: [depth_max][]const u8 = undefined,
    depth: usize = 0,
    group: Group,
    physicals: std.ArrayList(Physical),
    logicals: std.ArrayList(Logical),
    segments: std.ArrayList(Segment),

    fn run(reader: *Reader) Error!void {
        while (true) {
            const name = switch (try reader.tokens.next()) {
                .word => |word| word,
                // The name of a volume may be a number.
                .number => reader.lastWord(),
                .symbol => |symbol| {
                    if (symbol != '}' or reader.depth == 0) return error.Damaged;
                    reader.depth -= 1;
                    continue;
                },
                .end => return if (reader.depth == 0) {} else error.Damaged,
                .string => return error.Damaged,
            };
            switch (try reader.tokens.next()) {
                .symbol => |symbol| switch (symbol) {
                    '{' => try reader.begin(name),
                    '=' => try reader.assign(name, try reader.values()),
                    else => return error.Damaged,
                },
                else => return error.Damaged,
            }
        }
    }

    /// The text of the number that was just read.
    fn lastWord(reader: *const Reader) []const u8 {
        const before = reader.tokens.text[0..reader.tokens.at];
        var first = before.len;
        while (first > 0 and std.ascii.isAlphanumeric(before[first - 1])) first -= 1;
        return before[first..];
    }

    fn within(reader: *const Reader, section: []const u8) bool {
        return reader.depth >= 2 and std.mem.eql(u8, reader.path[1], section);
    }

    fn begin(reader: *Reader, name: []const u8) Error!void {
        if (reader.depth == depth_max or name.len > name_size_max) return error.Damaged;
        reader.path[reader.depth] = name;
        reader.depth += 1;
        switch (reader.depth) {
            1 => if (reader.group.name.len == 0) {
                reader.group.name = name;
            },
            3 => if (reader.within("physical_volumes")) {
                reader.physicals.appendBounded(.{ .name = name }) catch return error.TooLarge;
            } else if (reader.within("logical_volumes")) {
                reader.logicals.appendBounded(
                    .{ .name = name, .segments_first = reader.segments.items.len },
                ) catch return error.TooLarge;
            },
            4 => if (reader.within("logical_volumes") and
                std.mem.startsWith(u8, name, "segment"))
            {
                reader.segments.appendBounded(.{}) catch return error.TooLarge;
                reader.logicals.items[reader.logicals.items.len - 1].segments_count += 1;
            },
            else => {},
        }
    }

    fn values(reader: *Reader) Error!Values {
        var found: Values = .{};
        var has_string = false;
        var has_number = false;
        var is_list = false;
        while (true) {
            switch (try reader.tokens.next()) {
                .string => |text| {
                    if (!has_string) found.string = text;
                    has_string = true;
                    if (std.mem.eql(u8, text, "VISIBLE")) found.has_visible = true;
                },
                .number => |number| {
                    if (!has_number) found.number = number;
                    has_number = true;
                },
                // A number with a fraction or a sign; none of those is needed.
                .word => {},
                .symbol => |symbol| switch (symbol) {
                    '[' => {
                        if (is_list) return error.Damaged;
                        is_list = true;
                        continue;
                    },
                    ']' => return if (is_list) found else error.Damaged,
                    ',' => if (!is_list) return error.Damaged,
                    else => return error.Damaged,
                },
                .end => return error.Damaged,
            }
            if (!is_list) return found;
        }
    }

    fn assign(reader: *Reader, name: []const u8, found: Values) Error!void {
        if (reader.depth == 1) {
            if (std.mem.eql(u8, name, "extent_size")) reader.group.extent_sectors = found.number;
            return;
        }
        if (reader.depth == 3 and reader.within("physical_volumes"))
            return assignPhysical(
                &reader.physicals.items[reader.physicals.items.len - 1],
                name,
                found,
            );
        if (!reader.within("logical_volumes")) return;
        if (reader.depth == 3 and std.mem.eql(u8, name, "status"))
            reader.logicals.items[reader.logicals.items.len - 1].is_visible = found.has_visible;
        if (reader.depth == 4 and reader.segments.items.len > 0)
            assignSegment(&reader.segments.items[reader.segments.items.len - 1], name, found);
    }
};

fn assignPhysical(physical: *Physical, name: []const u8, found: Values) Error!void {
    if (std.mem.eql(u8, name, "pe_start")) physical.first_sector = found.number;
    if (std.mem.eql(u8, name, "pe_count")) physical.extent_count = found.number;
    if (!std.mem.eql(u8, name, "id")) return;
    var size: usize = 0;
    for (found.string) |byte| {
        if (byte == '-') continue;
        if (size == physical.id.len) return error.Damaged;
        physical.id[size] = byte;
        size += 1;
    }
    if (size != physical.id.len) return error.Damaged;
}

fn assignSegment(segment: *Segment, name: []const u8, found: Values) void {
    if (std.mem.eql(u8, name, "start_extent")) segment.first = found.number;
    if (std.mem.eql(u8, name, "extent_count")) segment.count = found.number;
    if (std.mem.eql(u8, name, "stripe_count")) segment.stripe_count = found.number;
    if (std.mem.eql(u8, name, "type")) segment.kind = kindOf(found.string);
    if (std.mem.eql(u8, name, "stripes")) {
        segment.physical = found.string;
        segment.physical_first = found.number;
    }
}

/// A linear segment is one of a single stripe.
fn kindOf(name: []const u8) Kind {
    if (std.mem.eql(u8, name, "striped") or std.mem.eql(u8, name, "linear")) return .linear;
    if (std.mem.startsWith(u8, name, "raid") or std.mem.eql(u8, name, "mirror")) return .raid;
    if (std.mem.startsWith(u8, name, "thin")) return .thin;
    if (std.mem.startsWith(u8, name, "cache") or
        std.mem.startsWith(u8, name, "writecache")) return .cache;
    if (std.mem.startsWith(u8, name, "snapshot")) return .snapshot;
    return .other;
}

/// Takes memory of `gpa` for the largest group that is read, about 100 KiB.
pub fn read(gpa: Allocator, text: []const u8) Error!Group {
    var reader: Reader = .{
        .tokens = .{ .text = text },
        .group = .{ .physicals = &.{}, .logicals = &.{}, .segments = &.{} },
        .physicals = try .initCapacity(gpa, physical_max),
        .logicals = try .initCapacity(gpa, logical_max),
        .segments = try .initCapacity(gpa, segments_max),
    };
    try reader.run();
    for (reader.segments.items) |*segment| if (segment.kind == .linear and
        segment.stripe_count != 1)
    {
        segment.kind = .striped;
    };
    reader.group.physicals = reader.physicals.items;
    reader.group.logicals = reader.logicals.items;
    reader.group.segments = reader.segments.items;
    if (reader.group.name.len == 0 or reader.group.extent_sectors == 0 or
        reader.group.extent_sectors > 1 << 32) return error.Damaged;
    return reader.group;
}

const testing = std.testing;

pub const test_text =
    \\fedora {
    \\id = "yIBZTv-4ZuD-9pAa-tTTm-dM5I-pCaG-dn9VPq"
    \\seqno = 3
    \\format = "lvm2" # informational
    \\status = ["RESIZEABLE", "READ", "WRITE"]
    \\flags = []
    \\extent_size = 8
    \\physical_volumes {
    \\pv0 {
    \\id = "Qq5CDL-y7qG-3qYk-VsGa-f3oX-AKJp-1zGbP4"
    \\device = "/dev/vda3"
    \\status = ["ALLOCATABLE"]
    \\pe_start = 64
    \\pe_count = 30
    \\}
    \\}
    \\logical_volumes {
    \\root {
    \\id = "x"
    \\status = ["READ", "WRITE", "VISIBLE"]
    \\creation_time = 1732000000
    \\segment_count = 2
    \\segment1 {
    \\start_extent = 0
    \\extent_count = 16
    \\type = "striped"
    \\stripe_count = 1
    \\stripes = [
    \\"pv0", 5
    \\]
    \\}
    \\segment2 {
    \\start_extent = 16
    \\extent_count = 4
    \\type = "striped"
    \\stripe_count = 1
    \\stripes = [
    \\"pv0", 1
    \\]
    \\}
    \\}
    \\pool {
    \\status = ["READ", "WRITE", "VISIBLE"]
    \\segment1 {
    \\start_extent = 0
    \\extent_count = 2
    \\type = "thin-pool"
    \\}
    \\}
    \\}
    \\}
    \\# Generated by LVM2
    \\contents = "Text Format Volume Group"
    \\version = 1
    \\
;

test "a group has its volumes with their segments" {
    var arena: std.heap.ArenaAllocator = .init(testing.allocator);
    defer arena.deinit();
    const group = try read(arena.allocator(), test_text);
    try testing.expectEqualStrings("fedora", group.name);
    try testing.expectEqual(8, group.extent_sectors);
    try testing.expectEqualStrings("Qq5CDLy7qG3qYkVsGaf3oXAKJp1zGbP4", &group.physicals[0].id);
    try testing.expectEqual(64, group.physicals[0].first_sector);
    try testing.expectEqual(2, group.logicals.len);
    try testing.expect(group.logicals[0].is_visible);
    try testing.expectEqual(2, group.logicals[0].segments_count);
    const first = group.segments[0];
    try testing.expectEqual(Kind.linear, first.kind);
    try testing.expectEqual(5, first.physical_first);
    try testing.expectEqualStrings("pv0", first.physical);
    try testing.expectEqual(Kind.thin, group.segments[2].kind);
}

test "text that is cut, nested too deeply or unbalanced is damaged" {
    var arena: std.heap.ArenaAllocator = .init(testing.allocator);
    defer arena.deinit();
    const gpa = arena.allocator();
    for (0..test_text.len - 72) |size|
        try testing.expectError(error.Damaged, read(gpa, test_text[0..size]));
    try testing.expectError(error.Damaged, read(gpa, "a{b{c{d{e{f{g{h{i{"));
    try testing.expectError(error.Damaged, read(gpa, "}"));
    try testing.expectError(error.Damaged, read(gpa, "a = [ [ 1 ] ]"));
    try testing.expectError(error.Damaged, read(gpa, "a = \"b\\"));
}

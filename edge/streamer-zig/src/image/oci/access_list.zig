//! Lists of access rights as texts (acl(5), "ACL TEXT FORMS"), which GNU tar and star write: as in
//! "user::rw-,user:1000:r--,mask::r--". Docker and Podman write extended attributes instead.

const std = @import("std");
const base = @import("base");
const Allocator = std.mem.Allocator;
const Fault = @import("fault.zig").Fault;

const entries_max = 512;
const entry_size = 8;
const no_id = std.math.maxInt(u32);

/// In the kernel's order.
const Tag = enum(u16) {
    owner = 0x01,
    user = 0x02,
    owning_group = 0x04,
    group = 0x08,
    mask = 0x10,
    other = 0x20,
};

const Entry = struct { tag: Tag, permissions: u16, id: u32 };

pub const Role = enum { access, default };

/// Returns the value of the extended attribute (version 2); null if a mode says as much.
pub fn parse(arena: Allocator, text: []const u8, role: Role) Fault!?[]const u8 {
    var entries: [entries_max]Entry = undefined;
    var count: usize = 0;
    var parts = std.mem.tokenizeAny(u8, text, ",\n");
    while (parts.next()) |part| {
        const comment = std.mem.findScalar(u8, part, '#') orelse part.len;
        const line = std.mem.trim(u8, part[0..comment], " \t");
        if (line.len == 0) continue;
        if (count == entries_max) return error.XattrsTooLarge;
        entries[count] = try entryOf(line);
        count += 1;
    }
    if (count == 0 or (role == .access and count == 3)) return null;
    base.sort(Entry, entries[0..count], {}, isBefore);
    for (entries[0..count], 0..) |entry, index|
        if (index > 0 and !isBefore({}, entries[index - 1], entry)) return error.XattrInvalid;
    const bytes = try arena.alloc(u8, 4 + count * entry_size);
    std.mem.writeInt(u32, bytes[0..4], 2, .little);
    for (entries[0..count], 0..) |entry, index| {
        const place = bytes[4 + index * entry_size ..][0..entry_size];
        std.mem.writeInt(u16, place[0..2], @backingInt(entry.tag), .little);
        std.mem.writeInt(u16, place[2..4], entry.permissions, .little);
        std.mem.writeInt(u32, place[4..8], entry.id, .little);
    }
    return bytes;
}

fn isBefore(_: void, a: Entry, b: Entry) bool {
    if (a.tag != b.tag) return @backingInt(a.tag) < @backingInt(b.tag);
    return a.id < b.id;
}

/// star writes the number of a name behind the rights.
fn entryOf(line: []const u8) Fault!Entry {
    var fields = std.mem.splitScalar(u8, line, ':');
    const tag = fields.first();
    const name = fields.next() orelse return error.XattrInvalid;
    const rights = fields.next() orelse return error.XattrInvalid;
    const number = fields.next();
    if (fields.next() != null or tag.len == 0) return error.XattrInvalid;
    const is_named = name.len > 0;
    const Word = enum { u, user, g, group, m, mask, o, other };
    const found: Tag = switch (std.meta.stringToEnum(Word, tag) orelse return error.XattrInvalid) {
        .u, .user => if (is_named) .user else .owner,
        .g, .group => if (is_named) .group else .owning_group,
        .m, .mask => .mask,
        .o, .other => .other,
    };
    if (is_named and found != .user and found != .group) return error.XattrInvalid;
    const id = if (is_named) try idOf(number orelse name) else no_id;
    return .{ .tag = found, .permissions = try permissionsOf(rights), .id = id };
}

fn idOf(name: []const u8) Fault!u32 {
    if (std.mem.eql(u8, name, "root")) return 0;
    // Which number a name has was known where the archive was made.
    for (name) |byte| if (!std.ascii.isDigit(byte)) return error.RightsNamed;
    return std.fmt.parseInt(u32, name, 10) catch error.NumberInvalid;
}

fn permissionsOf(text: []const u8) Fault!u16 {
    var permissions: u16 = 0;
    for (text) |byte| permissions |= switch (byte) {
        'r' => 4,
        'w' => 2,
        'x' => 1,
        '-' => 0,
        else => return error.XattrInvalid,
    };
    return permissions;
}

const testing = std.testing;

test "a text becomes the kernel's list, in its order" {
    var arena: std.heap.ArenaAllocator = .init(testing.allocator);
    defer arena.deinit();
    const gpa = arena.allocator();
    const found = try parse(
        gpa,
        "other::r--\nuser::rw-\nuser:1000:r-x\nu:root:rwx\ngroup::r-- #effective\nmask::rwx\n",
        .access,
    );
    try testing.expectEqualSlices(u8, "\x02\x00\x00\x00" ++
        "\x01\x00\x06\x00\xff\xff\xff\xff" ++ "\x02\x00\x07\x00\x00\x00\x00\x00" ++
        "\x02\x00\x05\x00\xe8\x03\x00\x00" ++ "\x04\x00\x04\x00\xff\xff\xff\xff" ++
        "\x10\x00\x07\x00\xff\xff\xff\xff" ++ "\x20\x00\x04\x00\xff\xff\xff\xff", found.?);
    const basic = "user::rw-,group::r--,other::r--";
    try testing.expectEqual(null, try parse(gpa, basic, .access));
    try testing.expectEqual(28, (try parse(gpa, basic, .default)).?.len);
    _ = try parse(gpa, "user:lisa:rw-:1001,mask::r--", .access);
    try testing.expectError(error.RightsNamed, parse(gpa, "user:lisa:rw-", .access));
    const damaged = [_][]const u8{ "x", "user::rq-", "mask:1:r--", "user::r,user::w", "u:1:r:2:3" };
    for (damaged) |text| try testing.expectError(error.XattrInvalid, parse(gpa, text, .access));
}

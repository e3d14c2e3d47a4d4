//! UUIDs (RFC 9562) in their lower-case text form.

const std = @import("std");
const assert = std.debug.assert;

pub const Uuid = @This();

bytes: [16]u8,

pub const text_size = 36;
pub const zero: Uuid = .{ .bytes = @splat(0) };

/// Positions of the dashes in the text form.
const dash_positions = [_]usize{ 8, 13, 18, 23 };

/// A version 4 UUID of 16 random bytes (RFC 9562 section 5.4): six of the 128 bits are
/// overwritten.
pub fn fromRandom(random: [16]u8) Uuid {
    var uuid: Uuid = .{ .bytes = random };
    uuid.bytes[6] = uuid.bytes[6] & 0x0f | 0x40;
    uuid.bytes[8] = uuid.bytes[8] & 0x3f | 0x80;
    return uuid;
}

pub fn fromBytes(bytes: [16]u8) Uuid {
    return .{ .bytes = bytes };
}

/// A GUID as SMBIOS, UEFI and DHCP option 97 store it: the first three fields are
/// little-endian.
pub fn fromMixedEndian(guid: [16]u8) Uuid {
    const g = guid;
    return .{ .bytes = .{
        g[3], g[2], g[1],  g[0],  g[5],  g[4],  g[7],  g[6],
        g[8], g[9], g[10], g[11], g[12], g[13], g[14], g[15],
    } };
}

/// The reverse of `fromMixedEndian`; the swap is its own inverse.
fn toMixedEndian(uuid: Uuid) [16]u8 {
    return fromMixedEndian(uuid.bytes).bytes;
}

pub fn parse(text: []const u8) error{InvalidUuid}!Uuid {
    if (text.len != text_size) return error.InvalidUuid;
    for (dash_positions) |position| if (text[position] != '-') return error.InvalidUuid;
    var uuid: Uuid = .zero;
    var at: usize = 0;
    for (&uuid.bytes) |*byte| {
        // Only the dashes checked above are skipped; one elsewhere is no digit.
        if (std.mem.findScalar(usize, &dash_positions, at) != null) at += 1;
        _ = std.fmt.hexToBytes(byte[0..1], text[at..][0..2]) catch return error.InvalidUuid;
        at += 2;
    }
    assert(at == text_size);
    return uuid;
}

pub fn format(uuid: Uuid, writer: *std.Io.Writer) std.Io.Writer.Error!void {
    for (uuid.bytes, 0..) |byte, index| {
        if (index == 4 or index == 6 or index == 8 or index == 10) try writer.writeByte('-');
        try writer.print("{x:0>2}", .{byte});
    }
}

pub fn toText(uuid: Uuid) [text_size]u8 {
    var text: [text_size]u8 = undefined;
    const written = std.mem.print(&text, "{f}", .{uuid}) catch unreachable;
    assert(written.len == text_size);
    return text;
}

/// A JSON string, for std.json.
pub fn jsonStringify(uuid: Uuid, json: anytype) !void {
    try json.print("\"{f}\"", .{uuid});
}

pub fn jsonParse(
    allocator: std.mem.Allocator,
    source: anytype,
    options: std.json.ParseOptions,
) !Uuid {
    const text = try std.json.innerParse([]const u8, allocator, source, options);
    return parse(text) catch error.UnexpectedToken;
}

pub fn eql(a: Uuid, b: Uuid) bool {
    return std.mem.eql(u8, &a.bytes, &b.bytes);
}

const testing = std.testing;

test "a UUID survives its text form" {
    const text = "00112233-4455-6677-8899-aabbccddeeff";
    const uuid = try Uuid.parse(text);
    try testing.expectEqualStrings(text, &uuid.toText());
    try testing.expect(uuid.eql(try .parse("00112233-4455-6677-8899-AABBCCDDEEFF")));
}

test "random bytes become a version 4 UUID" {
    const uuid: Uuid = .fromRandom(@splat(0xff));
    try testing.expectEqualStrings("ffffffff-ffff-4fff-bfff-ffffffffffff", &uuid.toText());
}

test "a mixed-endian GUID is converted and back" {
    const guid = [16]u8{
        0x33, 0x22, 0x11, 0x00, 0x55, 0x44, 0x77, 0x66,
        0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff,
    };
    const uuid: Uuid = .fromMixedEndian(guid);
    try testing.expectEqualStrings("00112233-4455-6677-8899-aabbccddeeff", &uuid.toText());
    try testing.expectEqualSlices(u8, &guid, &uuid.toMixedEndian());
}

test "text that is not a UUID is refused" {
    const wrong = [_][]const u8{
        "",
        "00112233445566778899aabbccddeeff",
        "00112233-4455-6677-8899-aabbccddeef",
        "00112233-4455-6677-8899-aabbccddeefg",
        "0011223-34455-6677-8899-aabbccddeeff",
        "00112233-4455-6677-8899-aabbccddee-f",
        "-0112233-4455-6677-8899-aabbccddeeff",
        "00112233-4455-6677-8899-a-bbccddeeff",
        "00112233-4455-6677-889--aabbccddeeff",
    };
    for (wrong) |text| try testing.expectError(error.InvalidUuid, Uuid.parse(text));
}

test "a UUID is a string in JSON" {
    const text = "\"00112233-4455-6677-8899-aabbccddeeff\"";
    const parsed = try std.json.parseFromSlice(Uuid, testing.allocator, text, .{});
    defer parsed.deinit();
    var buffer: [Uuid.text_size + 2]u8 = undefined;
    var writer: std.Io.Writer = .fixed(&buffer);
    try std.json.Stringify.value(parsed.value, .{}, &writer);
    try testing.expectEqualStrings(text, writer.buffered());
    try testing.expectError(
        error.UnexpectedToken,
        std.json.parseFromSlice(Uuid, testing.allocator, "\"x\"", .{}),
    );
}

//! Tests sealed_box.zig by the vector of RFC 9180, appendix A.2.1.

const std = @import("std");
const sealed_box = @import("sealed_box.zig");

const testing = std.testing;

const Vector = struct {
    infoHex: []const u8,
    ephemeralPublicHex: []const u8,
    recipientSecretHex: []const u8,
    aadHex: []const u8,
    plaintextHex: []const u8,
    ciphertextHex: []const u8,
};

const Fixture = struct {
    arena: std.heap.ArenaAllocator,
    secret: [32]u8,
    box: []u8,
    info: []u8,
    aad: []u8,
    plaintext: []u8,

    fn init() !Fixture {
        var arena: std.heap.ArenaAllocator = .init(testing.allocator);
        errdefer arena.deinit();
        const File = struct { rfc9180: Vector };
        const text = @embedFile("sealed_box_vectors_json");
        const parsed = try std.json.parseFromSliceLeaky(
            File,
            arena.allocator(),
            text,
            .{ .ignore_unknown_fields = true },
        );
        const vector = &parsed.rfc9180;
        const gpa = arena.allocator();
        const key = try bytes(gpa, vector.ephemeralPublicHex);
        const ciphertext = try bytes(gpa, vector.ciphertextHex);
        return .{
            .secret = (try bytes(gpa, vector.recipientSecretHex))[0..32].*,
            .box = try std.mem.concat(gpa, u8, &.{ key, ciphertext }),
            .info = try bytes(gpa, vector.infoHex),
            .aad = try bytes(gpa, vector.aadHex),
            .plaintext = try bytes(gpa, vector.plaintextHex),
            .arena = arena,
        };
    }

    fn bytes(gpa: std.mem.Allocator, hex: []const u8) ![]u8 {
        return std.fmt.hexToBytes(try gpa.alloc(u8, hex.len / 2), hex);
    }

    fn open(fixture: *const Fixture, box: []const u8, out: []u8) sealed_box.Error![]u8 {
        return sealed_box.open(
            &fixture.secret,
            .{ .bytes = box, .info = fixture.info, .aad = fixture.aad },
            out,
        );
    }
};

test "the box of RFC 9180, appendix A.2.1, opens" {
    var fixture: Fixture = try .init();
    defer fixture.arena.deinit();
    var out: [256]u8 = undefined;
    try testing.expectEqualStrings(fixture.plaintext, try fixture.open(fixture.box, &out));
}

test "a box with any byte changed, cut off, or for another purpose or key does not open" {
    var fixture: Fixture = try .init();
    defer fixture.arena.deinit();
    var out: [256]u8 = undefined;
    for (fixture.box) |*byte| {
        byte.* ^= 1;
        defer byte.* ^= 1;
        try testing.expectError(error.NotOpened, fixture.open(fixture.box, &out));
    }
    for (0..fixture.box.len) |size| {
        const expected: sealed_box.Error =
            if (size < sealed_box.overhead_size) error.Truncated else error.NotOpened;
        try testing.expectError(expected, fixture.open(fixture.box[0..size], &out));
    }
    fixture.info[0] ^= 1;
    try testing.expectError(error.NotOpened, fixture.open(fixture.box, &out));
    fixture.info[0] ^= 1;
    fixture.secret[5] ^= 1;
    try testing.expectError(error.NotOpened, fixture.open(fixture.box, &out));
}

test "a box whose key gives every recipient the same secret does not open" {
    var fixture: Fixture = try .init();
    defer fixture.arena.deinit();
    var out: [256]u8 = undefined;
    @memset(fixture.box[0..32], 0);
    try testing.expectError(error.NotOpened, fixture.open(fixture.box, &out));
}

//! The four top-level roles of TUF metadata (specification section 4): parsing with limits, and
//! whether a document has the signatures of its role. Only Ed25519 keys count. A document of
//! another role is refused even if the keys are the same. Nothing here depends on a clock.

const std = @import("std");
const base = @import("base");
const canonical_json = @import("canonical_json.zig");
const assert = std.debug.assert;
const Allocator = std.mem.Allocator;
const Ed25519 = base.Ed25519;
const Value = canonical_json.Value;

pub const Role = enum { root, timestamp, snapshot, targets };

/// Bytes of a document. A role that does not state its size gets this much.
pub fn sizeMax(role: Role) u32 {
    return switch (role) {
        .root, .snapshot => 64 << 10,
        .timestamp => 16 << 10,
        .targets => 256 << 10,
    };
}

const keys_max = 64;
const role_keys_max = 32;
const signatures_max = 64;
const snapshot_files_max = 32;
const targets_max = 1024;
const path_size_max = 256;
/// Bytes of a path under which a target is requested: with its hash.
pub const request_path_size_max = path_size_max + 65;
/// JSON numbers of the protocol are at most 2^53 - 1.
const number_max = (1 << 53) - 1;

pub const Error = error{
    Malformed,
    /// A newer major version of the specification, or hashes without SHA-256.
    Unsupported,
    WrongRole,
    OutOfMemory,
};

pub const Signature = struct {
    key_id: []const u8,
    /// Null: not of Ed25519.
    bytes: ?[Ed25519.Signature.encoded_length]u8,
};

/// A document before its role's fields are read.
pub const Document = struct {
    fields: std.json.ObjectMap,
    /// The bytes that are signed.
    canonical: []const u8,
    signatures: []const Signature,
    version: u64,
    expires_s: u64,
};

/// Parses what all roles have. Everything returned lives in `arena`.
pub fn open(arena: Allocator, text: []const u8, role: Role) Error!Document {
    const whole = try canonical_json.parse(arena, text);
    const signed = try field(&whole, "signed");
    const fields = try object(signed);
    if (!std.mem.eql(u8, try string(try get(&fields, "_type")), @tagName(role)))
        return error.WrongRole;
    const specification = try string(try get(&fields, "spec_version"));
    if (!std.mem.startsWith(u8, specification, "1.")) return error.Unsupported;
    const version = try number(try get(&fields, "version"));
    if (version == 0) return error.Malformed;
    return .{
        .fields = fields,
        .canonical = try canonical_json.encode(arena, signed),
        .signatures = try signaturesOf(arena, try field(&whole, "signatures")),
        .version = version,
        .expires_s = try parseTime(try string(try get(&fields, "expires"))),
    };
}

fn signaturesOf(arena: Allocator, value: *const Value) Error![]const Signature {
    const items = try array(value);
    if (items.len > signatures_max) return error.Malformed;
    const signatures = try arena.alloc(Signature, items.len);
    for (signatures, items, 0..) |*signature, *item, index| {
        const key_id = try string(try field(item, "keyid"));
        // Section 4.2.1: a key id is unique among the signatures.
        for (signatures[0..index]) |*other|
            if (std.mem.eql(u8, other.key_id, key_id)) return error.Malformed;
        signature.* = .{
            .key_id = key_id,
            .bytes = hex(64, try string(try field(item, "sig"))) catch null,
        };
    }
    return signatures;
}

const Key = struct {
    id: []const u8,
    /// Null: of a kind that does not count.
    public: ?[32]u8,
};

const RoleKeys = struct {
    key_ids: []const []const u8,
    threshold: u64,

    fn eql(keys: *const RoleKeys, other: *const RoleKeys) bool {
        if (keys.threshold != other.threshold) return false;
        if (keys.key_ids.len != other.key_ids.len) return false;
        for (keys.key_ids) |id| if (!contains(other.key_ids, id)) return false;
        return true;
    }
};

pub const Root = struct {
    version: u64,
    expires_s: u64,
    is_consistent: bool,
    keys: []const Key,
    roles: std.EnumArray(Role, RoleKeys),

    pub fn parse(arena: Allocator, document: *const Document) Error!Root {
        var root: Root = .{
            .version = document.version,
            .expires_s = document.expires_s,
            .is_consistent = false,
            .keys = try keysOf(arena, try get(&document.fields, "keys")),
            .roles = undefined,
        };
        if (document.fields.getPtr("consistent_snapshot")) |value| switch (value.*) {
            .bool => |is_consistent| root.is_consistent = is_consistent,
            else => return error.Malformed,
        };
        const roles = try get(&document.fields, "roles");
        for (std.enums.values(Role)) |role|
            root.roles.set(role, try roleKeysOf(arena, try field(roles, @tagName(role))));
        return root;
    }

    /// Returns whether enough keys of a role have signed. Each key counts once, under whatever
    /// identifiers it is listed.
    pub fn isSigned(root: *const Root, role: Role, document: *const Document) bool {
        const role_keys = root.roles.getPtrConst(role);
        assert(role_keys.threshold > 0);
        assert(role_keys.key_ids.len <= role_keys_max);
        var counted: base.BoundedArray([32]u8, role_keys_max) = .empty;
        for (role_keys.key_ids) |id| {
            const public = root.publicKey(id) orelse continue;
            if (isOneOf(counted.constSlice(), &public)) continue;
            if (hasSignature(document, id, &public)) counted.appendAssumeCapacity(public);
        }
        return counted.count >= role_keys.threshold;
    }

    /// Returns whether a role has other keys, or another threshold, than in `other`.
    pub fn isRotated(root: *const Root, role: Role, other: *const Root) bool {
        if (!root.roles.getPtrConst(role).eql(other.roles.getPtrConst(role))) return true;
        for (root.roles.getPtrConst(role).key_ids) |id| {
            const now = root.publicKey(id) orelse continue;
            const before = other.publicKey(id) orelse return true;
            if (!std.mem.eql(u8, &now, &before)) return true;
        }
        return false;
    }

    fn publicKey(root: *const Root, id: []const u8) ?[32]u8 {
        for (root.keys) |*key| if (std.mem.eql(u8, key.id, id)) return key.public;
        return null;
    }
};

fn hasSignature(document: *const Document, key_id: []const u8, public: *const [32]u8) bool {
    for (document.signatures) |*signature| {
        if (!std.mem.eql(u8, signature.key_id, key_id)) continue;
        const bytes = signature.bytes orelse return false;
        const key = Ed25519.PublicKey.fromBytes(public.*) catch return false;
        Ed25519.Signature.fromBytes(bytes).verifyStrict(&.{document.canonical}, key) catch
            return false;
        return true;
    }
    return false;
}

fn keysOf(arena: Allocator, value: *const Value) Error![]const Key {
    const fields = try object(value);
    if (fields.count() > keys_max) return error.Malformed;
    const keys = try arena.alloc(Key, fields.count());
    for (keys, fields.keys(), fields.values()) |*key, id, *one| {
        const is_ed25519 = std.mem.eql(u8, try string(try field(one, "keytype")), "ed25519") and
            std.mem.eql(u8, try string(try field(one, "scheme")), "ed25519");
        const public = try string(try field(try field(one, "keyval"), "public"));
        key.* = .{ .id = id, .public = if (is_ed25519) try hex(32, public) else null };
    }
    return keys;
}

fn roleKeysOf(arena: Allocator, value: *const Value) Error!RoleKeys {
    const items = try array(try field(value, "keyids"));
    if (items.len > role_keys_max) return error.Malformed;
    const ids = try arena.alloc([]const u8, items.len);
    for (ids, items, 0..) |*id, *item, index| {
        id.* = try string(item);
        if (contains(ids[0..index], id.*)) return error.Malformed;
    }
    const threshold = try number(try field(value, "threshold"));
    if (threshold == 0) return error.Malformed;
    return .{ .key_ids = ids, .threshold = threshold };
}

/// How one role's document describes another's.
pub const FileMeta = struct {
    version: u64,
    length: ?u64,
    sha256: ?[32]u8,

    /// Returns whether these bytes can be the file, as far as size and hash are stated.
    pub fn matches(meta: *const FileMeta, bytes: []const u8) bool {
        if (meta.length) |length| if (bytes.len != length) return false;
        const want = meta.sha256 orelse return true;
        var digest: [32]u8 = undefined;
        base.Sha256.hash(bytes, &digest, .{});
        return std.mem.eql(u8, &digest, &want);
    }

    pub fn sizeLimit(meta: *const FileMeta, role: Role) u64 {
        return @min(meta.length orelse sizeMax(role), sizeMax(role));
    }
};

fn fileMetaOf(value: *const Value) Error!FileMeta {
    const fields = try object(value);
    const version = try number(try get(&fields, "version"));
    if (version == 0) return error.Malformed;
    return .{
        .version = version,
        .length = if (fields.getPtr("length")) |length| try number(length) else null,
        .sha256 = if (fields.getPtr("hashes")) |hashes| try sha256Of(hashes) else null,
    };
}

fn sha256Of(hashes: *const Value) Error![32]u8 {
    const fields = try object(hashes);
    return hex(32, try string(fields.getPtr("sha256") orelse return error.Unsupported));
}

pub const Timestamp = struct {
    version: u64,
    expires_s: u64,
    snapshot: FileMeta,

    pub fn parse(document: *const Document) Error!Timestamp {
        const meta = try field(try get(&document.fields, "meta"), "snapshot.json");
        return .{
            .version = document.version,
            .expires_s = document.expires_s,
            .snapshot = try fileMetaOf(meta),
        };
    }
};

pub const Snapshot = struct {
    version: u64,
    expires_s: u64,
    files: []const File,
    targets: FileMeta,

    const File = struct { name: []const u8, version: u64 };

    pub fn parse(arena: Allocator, document: *const Document) Error!Snapshot {
        const meta = try object(try get(&document.fields, "meta"));
        if (meta.count() > snapshot_files_max) return error.Malformed;
        const files = try arena.alloc(File, meta.count());
        for (files, meta.keys(), meta.values()) |*file, name, *value|
            file.* = .{ .name = name, .version = (try fileMetaOf(value)).version };
        return .{
            .version = document.version,
            .expires_s = document.expires_s,
            .files = files,
            .targets = try fileMetaOf(try get(&meta, "targets.json")),
        };
    }

    /// Returns whether a file that `older` lists is missing here or has a lower version.
    pub fn rollsBack(snapshot: *const Snapshot, older: *const Snapshot) bool {
        for (older.files) |*file| {
            const now = for (snapshot.files) |*one| {
                if (std.mem.eql(u8, one.name, file.name)) break one.version;
            } else return true;
            if (now < file.version) return true;
        }
        return false;
    }
};

pub const Target = struct {
    path: []const u8,
    size: u64,
    sha256: [32]u8,

    /// Returns the path below the repository's `targets/` at which the file is requested.
    pub fn requestPath(
        target: *const Target,
        buffer: *[request_path_size_max]u8,
        is_consistent: bool,
    ) []const u8 {
        assert(target.path.len <= path_size_max);
        if (!is_consistent) return target.path;
        const name_at = if (std.mem.findScalarLast(u8, target.path, '/')) |at| at + 1 else 0;
        return std.mem.print(buffer, "{s}{x}.{s}", .{
            target.path[0..name_at], &target.sha256, target.path[name_at..],
        }) catch unreachable;
    }
};

pub const Targets = struct {
    version: u64,
    expires_s: u64,
    files: []const Target,

    /// Delegations are not followed: the number of roles that are visited for a target is one
    /// (section 5.6.7.1 leaves it to the application).
    pub fn parse(arena: Allocator, document: *const Document) Error!Targets {
        const fields = try object(try get(&document.fields, "targets"));
        if (fields.count() > targets_max) return error.Malformed;
        const files = try arena.alloc(Target, fields.count());
        for (files, fields.keys(), fields.values()) |*file, path, *value| {
            if (!isPath(path)) return error.Malformed;
            file.* = .{
                .path = path,
                .size = try number(try field(value, "length")),
                .sha256 = try sha256Of(try field(value, "hashes")),
            };
        }
        return .{
            .version = document.version,
            .expires_s = document.expires_s,
            .files = files,
        };
    }

    pub fn find(targets: *const Targets, path: []const u8) ?*const Target {
        for (targets.files) |*file| if (std.mem.eql(u8, file.path, path)) return file;
        return null;
    }
};

/// A path becomes part of a URL: its segments are plain and none is empty or begins with a dot.
fn isPath(path: []const u8) bool {
    if (path.len == 0 or path.len > path_size_max) return false;
    var segments = std.mem.splitScalar(u8, path, '/');
    while (segments.next()) |segment| {
        if (segment.len == 0 or segment[0] == '.') return false;
        for (segment) |byte| switch (byte) {
            'A'...'Z', 'a'...'z', '0'...'9', '.', '-', '_', '+' => {},
            else => return false,
        };
    }
    return true;
}

/// Returns the seconds since 1970 of `YYYY-MM-DDTHH:MM:SSZ` (section 4.2.3).
fn parseTime(text: []const u8) error{Malformed}!u64 {
    if (text.len != 20) return error.Malformed;
    for ("--T::Z", [_]usize{ 4, 7, 10, 13, 16, 19 }) |mark, at|
        if (text[at] != mark) return error.Malformed;
    const year = try digits(text[0..4], 1970, 9999);
    const month = try digits(text[5..7], 1, 12);
    const leap = std.time.epoch.isLeapYear(@intCast(year));
    const month_days = [_]u64{ 31, if (leap) 29 else 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    const day = try digits(text[8..10], 1, month_days[month - 1]);
    var days = day - 1;
    for (month_days[0 .. month - 1]) |count| days += count;
    // Leap days of the years from 1970 on, before this one.
    const before = year - 1;
    const leap_days_1969 = 1969 / 4 - 1969 / 100 + 1969 / 400;
    const leap_days = before / 4 - before / 100 + before / 400 - leap_days_1969;
    days += (year - 1970) * 365 + leap_days;
    const hour = try digits(text[11..13], 0, 23);
    const minute = try digits(text[14..16], 0, 59);
    const second = try digits(text[17..19], 0, 59);
    return ((days * 24 + hour) * 60 + minute) * 60 + second;
}

fn digits(text: []const u8, min: u64, max: u64) error{Malformed}!u64 {
    var value: u64 = 0;
    for (text) |byte| {
        if (!std.ascii.isDigit(byte)) return error.Malformed;
        value = value * 10 + (byte - '0');
    }
    if (value < min or value > max) return error.Malformed;
    return value;
}

fn hex(comptime size: usize, text: []const u8) error{Malformed}![size]u8 {
    var bytes: [size]u8 = undefined;
    if (text.len != 2 * size) return error.Malformed;
    _ = std.fmt.hexToBytes(&bytes, text) catch return error.Malformed;
    return bytes;
}

fn contains(ids: []const []const u8, id: []const u8) bool {
    for (ids) |one| if (std.mem.eql(u8, one, id)) return true;
    return false;
}

fn isOneOf(keys: []const [32]u8, key: *const [32]u8) bool {
    for (keys) |*one| if (std.mem.eql(u8, one, key)) return true;
    return false;
}

fn get(fields: *const std.json.ObjectMap, name: []const u8) error{Malformed}!*const Value {
    return fields.getPtr(name) orelse error.Malformed;
}

fn field(value: *const Value, name: []const u8) error{Malformed}!*const Value {
    return switch (value.*) {
        .object => |*fields| fields.getPtr(name) orelse error.Malformed,
        else => error.Malformed,
    };
}

fn object(value: *const Value) error{Malformed}!std.json.ObjectMap {
    return switch (value.*) {
        .object => |fields| fields,
        else => error.Malformed,
    };
}

fn array(value: *const Value) error{Malformed}![]const Value {
    return switch (value.*) {
        .array => |items| items.items,
        else => error.Malformed,
    };
}

fn string(value: *const Value) error{Malformed}![]const u8 {
    return switch (value.*) {
        .string => |text| text,
        else => error.Malformed,
    };
}

fn number(value: *const Value) error{Malformed}!u64 {
    const text = switch (value.*) {
        .number_string => |text| text,
        else => return error.Malformed,
    };
    const signed = try canonical_json.integer(text);
    if (signed < 0 or signed > number_max) return error.Malformed;
    return @intCast(signed);
}

const testing = std.testing;

test "times are those of the calendar" {
    try testing.expectEqual(0, try parseTime("1970-01-01T00:00:00Z"));
    try testing.expectEqual(498705660, try parseTime("1985-10-21T01:21:00Z"));
    try testing.expectEqual(951782400, try parseTime("2000-02-29T00:00:00Z"));
    try testing.expectEqual(1795003600, try parseTime("2026-11-18T12:06:40Z"));
    try testing.expectEqual(4107542399, try parseTime("2100-02-28T23:59:59Z"));
    try testing.expectEqual(253402300799, try parseTime("9999-12-31T23:59:59Z"));
    for ([_][]const u8{
        "2100-02-29T00:00:00Z",  "2026-13-01T00:00:00Z", "2026-00-01T00:00:00Z",
        "2026-01-32T00:00:00Z",  "2026-01-01T24:00:00Z", "2026-01-01T00:60:00Z",
        "2026-01-01T00:00:60Z",  "2026-01-01 00:00:00Z", "2026-01-01T00:00:00+",
        "2026-01-01T00:00:00.0", "1969-12-31T23:59:59Z", "+026-01-01T00:00:00Z",
        "2026-01-00T00:00:00Z",  "2026/01-01T00:00:00Z", "2026-01-01T00-00:00Z",
    }) |text| try testing.expectError(error.Malformed, parseTime(text));
}

test "a target's path cannot leave its folder" {
    for ([_][]const u8{ "a", "bootfarm-edge/0.2.0+x/x86_64/bootfarm-edge" }) |path|
        try testing.expect(isPath(path));
    const unfit = [_][]const u8{
        "", "/a", "a/", "a//b", "../a", "a/../b", ".a", "a b", "a?b", "a%2e", "\\",
    };
    for (unfit) |path|
        try testing.expect(!isPath(path));
    const long: [path_size_max + 1]u8 = @splat('a');
    try testing.expect(!isPath(&long));
    try testing.expect(isPath(long[1..]));
}

const document_head = "\"spec_version\":\"1.0\",\"version\":1," ++
    "\"expires\":\"2030-01-01T00:00:00Z\",\"_type\":";

/// Returns `count` items, numbered in place of each `#`.
fn repeated(arena: Allocator, item: []const u8, count: u32) ![]const u8 {
    var out: std.Io.Writer.Allocating = .init(arena);
    for (0..count) |number_of| {
        if (number_of > 0) try out.writer.writeByte(',');
        var pieces = std.mem.splitScalar(u8, item, '#');
        try out.writer.writeAll(pieces.first());
        while (pieces.next()) |piece| try out.writer.print("{d}{s}", .{ number_of, piece });
    }
    return out.written();
}

const Counts = struct { signatures: u32 = 1, keys: u32 = 1, key_ids: u32 = 1, files: u32 = 1 };

fn parseMade(arena: Allocator, role: Role, counts: Counts) !void {
    const unsigned = "{\"keyid\":\"#\",\"sig\":\"\"}";
    const signatures = try repeated(arena, unsigned, counts.signatures);
    const keys = try repeated(
        arena,
        "\"#\":{\"keytype\":\"x\",\"scheme\":\"x\",\"keyval\":{\"public\":\"\"}}",
        counts.keys,
    );
    const role_keys = try std.fmt.allocPrint(
        arena,
        "{{\"keyids\":[{s}],\"threshold\":1}}",
        .{try repeated(arena, "\"#\"", counts.key_ids)},
    );
    const metas = try repeated(arena, "\"#\":{\"version\":1}", counts.files - 1);
    const hash: [64]u8 = @splat('a');
    const file = "\"#\":{\"length\":1,\"hashes\":{\"sha256\":\"" ++ hash ++ "\"}}";
    const body = switch (role) {
        .root => try std.fmt.allocPrint(arena, "\"keys\":{{{s}}},\"roles\":{{" ++
            "\"root\":{s},\"timestamp\":{s},\"snapshot\":{s},\"targets\":{s}}}", .{
            keys, role_keys, role_keys, role_keys, role_keys,
        }),
        .timestamp => "\"meta\":{\"snapshot.json\":{\"version\":1}}",
        .snapshot => try std.fmt.allocPrint(
            arena,
            "\"meta\":{{\"targets.json\":{{\"version\":1}}{s}{s}}}",
            .{ if (counts.files > 1) "," else "", metas },
        ),
        .targets => try std.fmt.allocPrint(arena, "\"targets\":{{{s}}}", .{
            try repeated(arena, file, counts.files),
        }),
    };
    const text = try std.fmt.allocPrint(
        arena,
        "{{\"signatures\":[{s}],\"signed\":{{" ++ document_head ++ "\"{t}\",{s}}}}}",
        .{ signatures, role, body },
    );
    const document = try open(arena, text, role);
    switch (role) {
        .root => _ = try Root.parse(arena, &document),
        .timestamp => _ = try Timestamp.parse(&document),
        .snapshot => _ = try Snapshot.parse(arena, &document),
        .targets => _ = try Targets.parse(arena, &document),
    }
}

test "a document has as many parts as its limits say, and not one more" {
    var arena_state: std.heap.ArenaAllocator = .init(testing.allocator);
    defer arena_state.deinit();
    const arena = arena_state.allocator();
    const most = [_]struct { Role, Counts }{
        .{ .timestamp, .{ .signatures = signatures_max } },
        .{ .root, .{ .keys = keys_max, .key_ids = role_keys_max } },
        .{ .snapshot, .{ .files = snapshot_files_max } },
        .{ .targets, .{ .files = targets_max } },
    };
    for (most) |made| try parseMade(arena, made[0], made[1]);
    const more = [_]struct { Role, Counts }{
        .{ .timestamp, .{ .signatures = signatures_max + 1 } },
        .{ .root, .{ .keys = keys_max + 1 } },
        .{ .root, .{ .key_ids = role_keys_max + 1 } },
        .{ .snapshot, .{ .files = snapshot_files_max + 1 } },
        .{ .targets, .{ .files = targets_max + 1 } },
    };
    for (more) |made| try testing.expectError(error.Malformed, parseMade(arena, made[0], made[1]));
}

test "a role lists each key once" {
    var arena_state: std.heap.ArenaAllocator = .init(testing.allocator);
    defer arena_state.deinit();
    const arena = arena_state.allocator();
    const value = try canonical_json.parse(arena, "{\"keyids\":[\"a\",\"a\"],\"threshold\":1}");
    try testing.expectError(error.Malformed, roleKeysOf(arena, &value));
}

test "a consistent repository names a target by its hash" {
    var buffer: [request_path_size_max]u8 = undefined;
    const target: Target = .{ .path = "a/b", .size = 1, .sha256 = @splat(0xab) };
    try testing.expectEqualStrings("a/b", target.requestPath(&buffer, false));
    const hash = std.fmt.bytesToHex(&target.sha256, .lower);
    try testing.expectEqualStrings("a/" ++ hash ++ ".b", target.requestPath(&buffer, true));
}

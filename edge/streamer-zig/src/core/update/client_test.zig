//! Tests of client.zig with packages/proto/vectors/tuf-v1.json: repositories that python-tuf made,
//! and attacks on them. packages/proto/test/tuf_vectors.py makes the file, and runs python-tuf's
//! own client on each case.

const std = @import("std");
const base = @import("base");
const Client = @import("client.zig");
const Download = @import("download.zig");

const testing = std.testing;

const Attack = enum {
    freeze,
    rollback,
    mix_and_match,
    fast_forward,
    stolen_online_key,
    wrong_role,
    expired_root,
    endless_data,
    /// In download.zig.
    slow_retrieval,
    arbitrary_file,
};

const Documents = struct {
    root: u32,
    timestamp: ?u32 = null,
    snapshot: ?u32 = null,
    targets: ?u32 = null,
};

/// What the client keeps; only versions that matter are named.
const Versions = struct {
    root: ?u64 = null,
    timestamp: ?u64 = null,
    snapshot: ?u64 = null,
    targets: ?u64 = null,
};

const Case = struct {
    name: []const u8,
    attack: ?Attack,
    verdict: []const u8,
    nowUnixS: u64,
    stored: Documents,
    files: std.json.ArrayHashMap(u32),
    after: ?Versions,
};

const Vectors = struct {
    version: u32,
    target: struct { path: []const u8, content: []const u8 },
    documents: []const struct { text: []const u8, padKiB: u32 = 0 },
    cases: []const Case,
};

/// The vectors, with documents at their full size.
const Repositories = struct {
    arena: std.heap.ArenaAllocator,
    vectors: Vectors,
    documents: []const []const u8,

    fn load() !Repositories {
        var arena: std.heap.ArenaAllocator = .init(testing.allocator);
        errdefer arena.deinit();
        const gpa = arena.allocator();
        const vectors = try std.json.parseFromSliceLeaky(
            Vectors,
            gpa,
            @embedFile("tuf_vectors_json"),
            .{ .ignore_unknown_fields = true },
        );
        try testing.expectEqual(1, vectors.version);
        const documents = try gpa.alloc([]const u8, vectors.documents.len);
        for (documents, vectors.documents) |*full, *document|
            full.* = try padded(gpa, document.text, document.padKiB);
        return .{ .arena = arena, .vectors = vectors, .documents = documents };
    }

    fn stored(repositories: *const Repositories, documents: *const Documents) Client.Stored {
        return .{
            .root = repositories.documents[documents.root],
            .timestamp = repositories.at(documents.timestamp),
            .snapshot = repositories.at(documents.snapshot),
            .targets = repositories.at(documents.targets),
        };
    }

    fn at(repositories: *const Repositories, index: ?u32) ?[]const u8 {
        return repositories.documents[index orelse return null];
    }
};

fn padded(gpa: std.mem.Allocator, text: []const u8, kib: u32) ![]const u8 {
    if (kib == 0) return text;
    const padding = try gpa.alloc(u8, kib << 10);
    @memset(padding, 'x');
    const field = "\"x\":\"";
    const begin = std.mem.find(u8, text, field).? + field.len;
    return std.mem.concat(gpa, u8, &.{ text[0..begin], padding, text[begin..] });
}

/// Runs an update against the case's repository, as a host does.
fn update(
    client: *Client,
    repositories: *const Repositories,
    case: *const Case,
) Client.Refusal!void {
    var buffer: [Client.name_size_max]u8 = undefined;
    while (client.request(&buffer)) |request| {
        const index = case.files.map.get(request.name) orelse {
            try client.receive(null);
            continue;
        };
        const file = repositories.documents[index];
        // A host does not read further than one byte beyond the limit.
        try client.receive(file[0..@min(file.len, request.size_max + 1)]);
    }
}

fn verdictOf(
    arena: std.mem.Allocator,
    repositories: *const Repositories,
    case: *const Case,
    kept: *Client.Stored,
) ![]const u8 {
    var client = Client.begin(arena, kept.*, case.nowUnixS) catch |err| return @errorName(err);
    const outcome = update(&client, repositories, case);
    kept.* = client.stored;
    var buffer: [Client.name_size_max]u8 = undefined;
    try testing.expectEqual(null, client.request(&buffer));
    outcome catch |err| return @errorName(err);
    try expectTarget(&client, &repositories.vectors);
    return "done";
}

fn expectTarget(client: *const Client, vectors: *const Vectors) !void {
    try testing.expectEqual(null, client.target("bootfarm-edge/9.9.9/x86_64/bootfarm-edge"));
    const target = client.target(vectors.target.path).?;
    var download: Download = .begin(target.size, 0);
    try download.receive(vectors.target.content, 1);
    try download.end(&target.sha256);
}

fn versionOf(arena: std.mem.Allocator, text: ?[]const u8) !?u64 {
    const Head = struct { signed: struct { version: u64 } };
    const head = try std.json.parseFromSliceLeaky(Head, arena, text orelse return null, .{
        .ignore_unknown_fields = true,
    });
    return head.signed.version;
}

fn expectKept(arena: std.mem.Allocator, want: *const Versions, kept: *const Client.Stored) !void {
    if (want.root) |version| try testing.expectEqual(version, try versionOf(arena, kept.root));
    inline for (.{ "timestamp", "snapshot", "targets" }) |role|
        if (@field(want, role)) |version|
            try testing.expectEqual(version, try versionOf(arena, @field(kept, role)));
}

test "repositories of python-tuf are accepted, and every attack on them is refused" {
    var repositories: Repositories = try .load();
    defer repositories.arena.deinit();
    var seen: std.EnumSet(Attack) = .empty;
    seen.insert(.slow_retrieval);
    for (repositories.vectors.cases) |*case| {
        errdefer std.debug.print("case: {s}\n", .{case.name});
        var arena: std.heap.ArenaAllocator = .init(testing.allocator);
        defer arena.deinit();
        var kept = repositories.stored(&case.stored);
        const verdict = try verdictOf(arena.allocator(), &repositories, case, &kept);
        try testing.expectEqualStrings(case.verdict, verdict);
        if (case.after) |*want| try expectKept(arena.allocator(), want, &kept);
        if (case.attack) |attack| seen.insert(attack);
    }
    try testing.expect(seen.eql(.full));
}

test "an update that was refused does not keep a later one from succeeding" {
    var repositories: Repositories = try .load();
    defer repositories.arena.deinit();
    const cases = repositories.vectors.cases;
    const good = for (cases) |*case| {
        if (std.mem.eql(u8, case.name, "a new release")) break case;
    } else unreachable;
    for (cases) |*case| {
        if (case.nowUnixS != good.nowUnixS or case.stored.root != good.stored.root) continue;
        // A repository with a root of its own goes another way.
        if (case.files.map.contains("2.root.json")) continue;
        if (std.mem.eql(u8, case.verdict, "done") or case.stored.timestamp != null) continue;
        errdefer std.debug.print("case: {s}\n", .{case.name});
        var arena: std.heap.ArenaAllocator = .init(testing.allocator);
        defer arena.deinit();
        var kept = repositories.stored(&case.stored);
        _ = try verdictOf(arena.allocator(), &repositories, case, &kept);
        // What the attacker was allowed to raise stays within what the owner publishes.
        const verdict = try verdictOf(arena.allocator(), &repositories, good, &kept);
        try testing.expectEqualStrings("done", verdict);
    }
}

test "what an update needs is bounded, whatever comes" {
    var repositories: Repositories = try .load();
    defer repositories.arena.deinit();
    const case = &repositories.vectors.cases[0];
    const memory = try testing.allocator.alloc(u8, Client.memory_max);
    defer testing.allocator.free(memory);
    inline for (.{ "[", "[[],", "{\"\":", "[\"\"," }) |piece| {
        var fixed: std.heap.FixedBufferAllocator = .init(memory);
        var client: Client =
            try .begin(fixed.allocator(), repositories.stored(&case.stored), case.nowUnixS);
        const hostile = try testing.allocator.alloc(u8, 64 << 10);
        defer testing.allocator.free(hostile);
        for (hostile, 0..) |*byte, index| byte.* = piece[index % piece.len];
        try testing.expectError(error.Malformed, client.receive(hostile));
    }
}

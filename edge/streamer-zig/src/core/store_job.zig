//! One piece of work for the store (packages/proto/UPLINK.md, "Jobs"): the command line of the process that does it, and what that
//! process says on its output, one JSON object a line. The process is our own program; its words are bounded and checked all the same.

const std = @import("std");
const base = @import("base");
const desired_state = @import("desired_state.zig");
const uplink_message = @import("uplink_message.zig");
const assert = std.debug.assert;

pub const Order = desired_state.StoreJob;

pub const Kind = enum { merge, verify, gc, delete };

pub const message_size_max = 256;
/// Of `madeVersion` as JSON: a command line whose characters are all escaped, and less than 512 bytes of the rest.
pub const made_size_max = 2 * desired_state.command_line_size_max + 512;
/// Longer lines are not read.
pub const line_size_max = 4096;
const number_max = (1 << 53) - 1;

pub const Message = base.BoundedArray(u8, message_size_max);
pub const Made = base.BoundedArray(u8, made_size_max);

/// Arguments of `bootfarm-edge`, each ended by a zero byte.
pub const Arguments = struct {
    buffer: [buffer_size]u8 = undefined,
    size: u16 = 0,
    words: [words_max:null]?[*:0]const u8 = @splat(null),
    count: u8 = 0,

    pub const words_max = 16;
    const buffer_size = 4096;

    /// How long a path of the store may be.
    pub const store_path_size_max = 2048;

    pub fn add(arguments: *Arguments, comptime format: []const u8, values: anytype) void {
        assert(arguments.count < words_max);
        var writer: std.Io.Writer = .fixed(arguments.buffer[arguments.size..]);
        // The longest paths and command line fit.
        writer.print(format ++ "\x00", values) catch unreachable;
        arguments.words[arguments.count] = @ptrCast(arguments.buffer[arguments.size..].ptr);
        arguments.count += 1;
        arguments.size += @intCast(writer.end);
    }

    fn addOption(arguments: *Arguments, comptime name: []const u8, comptime format: []const u8, value: anytype) void {
        const given = value orelse return;
        arguments.add("--" ++ name, .{});
        arguments.add(format, .{given});
    }

    pub fn word(arguments: *const Arguments, index: usize) []const u8 {
        return std.mem.span(arguments.words[index].?);
    }
};

/// Why a job cannot be begun, for a person; null: `arguments` say what to run.
pub fn write(arguments: *Arguments, program: []const u8, store_path: []const u8, order: *const Order) ?[]const u8 {
    const kind = std.meta.stringToEnum(Kind, order.kind) orelse return "this edge does not do work of this kind; another version of it may";
    switch (kind) {
        .gc, .verify => {},
        .delete => _ = order.versionId orelse return "it does not say which version to delete",
        .merge => {
            _ = order.versionId orelse return "it does not say which version to merge";
            _ = order.intoVersionId orelse return "it does not say which version to make";
            const number = order.number orelse return "it does not say which number the version is to have";
            if (number == 0 or number > std.math.maxInt(u32)) return "no version can have its number";
        },
    }
    begin(arguments, program, @tagName(kind), store_path);
    arguments.addOption("version", "{f}", order.versionId);
    arguments.addOption("into", "{f}", order.intoVersionId);
    arguments.addOption("number", "{d}", order.number);
    arguments.addOption("parent", "{f}", order.parentVersionId);
    return null;
}

/// The process that says what the store holds.
pub fn writeList(arguments: *Arguments, program: []const u8, store_path: []const u8) void {
    begin(arguments, program, "list", store_path);
}

/// The process that reads through a version since it is time to.
pub fn writeCheck(arguments: *Arguments, program: []const u8, store_path: []const u8, version_id: base.Uuid) void {
    begin(arguments, program, "verify", store_path);
    arguments.addOption("version", "{f}", @as(?base.Uuid, version_id));
    arguments.add("--paced", .{});
}

fn begin(arguments: *Arguments, program: []const u8, kind: []const u8, store_path: []const u8) void {
    assert(program.len <= 64 and store_path.len <= Arguments.store_path_size_max);
    arguments.size = 0;
    arguments.count = 0;
    arguments.words = @splat(null);
    arguments.add("{s}", .{program});
    arguments.add("store-job", .{});
    arguments.add("{s}", .{kind});
    arguments.add("--store", .{});
    arguments.add("{s}", .{store_path});
}

fn isPrintable(text: []const u8) bool {
    for (text) |byte| if (!std.ascii.isPrint(byte)) return false;
    return true;
}

/// What a line said.
pub const Said = union(enum) {
    progress: struct { done_bytes: u64, total_bytes: u64, message: Message },
    /// The last line of a process that has done its work.
    done: Made,
    /// The last line of one that has not.
    failed: Message,
    /// Found by a verification.
    damaged: base.Uuid,
    version: StoredVersion,
};

pub const StoreFacts = struct {
    id: base.Uuid,
    public_key: [32]u8,
    format: u64,
    problem: base.UntrustedText = .empty,
};

pub const VersionState = enum { present, importing, damaged, missing };

pub const StoredVersion = struct {
    version_id: base.Uuid,
    state: VersionState,
    root: ?[32]u8 = null,
    is_layer: bool = false,
    own_bytes: u64,
    shared_bytes: u64,
    reclaimable_bytes: u64,
};

pub const BundleFile = struct { sha256: []const u8, sizeBytes: u64 };

/// `madeVersion` of src/uplink-store.ts.
pub const MadeVersion = struct {
    versionId: base.Uuid,
    root: []const u8,
    counter: u64,
    sizeBytes: u64,
    commandLine: ?[]const u8 = null,
    kernel: ?BundleFile = null,
    initrd: ?BundleFile = null,
};

const Line = struct {
    progressBytes: ?u64 = null,
    totalBytes: ?u64 = null,
    message: ?[]const u8 = null,
    done: bool = false,
    made: ?MadeVersion = null,
    @"error": ?[]const u8 = null,
    damaged: ?base.Uuid = null,
    version: ?struct {
        versionId: base.Uuid,
        state: VersionState,
        root: ?[]const u8 = null,
        isLayer: bool = false,
        ownBytes: u64,
        sharedBytes: u64,
        reclaimableBytes: u64,
    } = null,
};

/// Null: nothing that is understood.
pub fn parse(text: []const u8) ?Said {
    if (text.len > line_size_max) return null;
    var memory: [16 * 1024]u8 = undefined;
    var fixed: std.heap.FixedBufferAllocator = .init(&memory);
    const line = std.json.parseFromSliceLeaky(Line, fixed.allocator(), text, .{ .ignore_unknown_fields = true }) catch return null;
    if (line.@"error") |sentence| return .{ .failed = messageOf(sentence) };
    if (line.done) {
        var made: Made = .empty;
        if (line.made) |*given| writeMade(&made, given) catch return .{ .failed = messageOf("it made something that cannot be read") };
        return .{ .done = made };
    }
    if (line.damaged) |id| return .{ .damaged = id };
    if (line.version) |*given| return .{ .version = .{
        .version_id = given.versionId,
        .state = given.state,
        .root = if (given.root) |root| uplink_message.parseKey(root) catch return null else null,
        .is_layer = given.isLayer,
        .own_bytes = numberOf(given.ownBytes) orelse return null,
        .shared_bytes = numberOf(given.sharedBytes) orelse return null,
        .reclaimable_bytes = numberOf(given.reclaimableBytes) orelse return null,
    } };
    return .{ .progress = .{
        .done_bytes = numberOf(line.progressBytes orelse return null) orelse return null,
        .total_bytes = numberOf(line.totalBytes orelse 0) orelse return null,
        .message = messageOf(line.message orelse ""),
    } };
}

fn numberOf(value: u64) ?u64 {
    return if (value > number_max) null else value;
}

/// Printable ASCII, cut where it is too long.
pub fn messageOf(text: []const u8) Message {
    var message: Message = .empty;
    for (text[0..@min(text.len, message_size_max)]) |byte|
        message.appendAssumeCapacity(if (std.ascii.isPrint(byte)) byte else '?');
    return message;
}

/// Checked: it is sent on as it is here.
pub fn writeMade(into: *Made, given: *const MadeVersion) error{Malformed}!void {
    _ = uplink_message.parseKey(given.root) catch return error.Malformed;
    if (given.counter > number_max or given.sizeBytes == 0 or given.sizeBytes > number_max) return error.Malformed;
    if (given.commandLine) |text|
        if (text.len > desired_state.command_line_size_max or !isPrintable(text)) return error.Malformed;
    for ([_]?BundleFile{ given.kernel, given.initrd }) |file| if (file) |known| {
        if (known.sizeBytes == 0 or known.sizeBytes > number_max or known.sha256.len != 64) return error.Malformed;
        for (known.sha256) |byte| if (!std.ascii.isDigit(byte) and (byte < 'a' or byte > 'f')) return error.Malformed;
    };
    var writer: std.Io.Writer = .fixed(&into.buffer);
    std.json.Stringify.value(given, .{ .emit_null_optional_fields = false }, &writer) catch return error.Malformed;
    into.count = @intCast(writer.end);
}

const testing = std.testing;

fn uuid(number: u8) base.Uuid {
    return .fromRandom(@splat(number));
}

test "a job becomes a command line, or a sentence that says what is missing" {
    var arguments: Arguments = .{};
    const merge: Order = .{ .id = uuid(1), .kind = "merge", .versionId = uuid(2), .intoVersionId = uuid(3), .number = 4 };
    try testing.expectEqual(null, write(&arguments, "p", "/s", &merge));
    const expected = [_][]const u8{ "p", "store-job", "merge", "--store", "/s", "--version", &uuid(2).toText(), "--into", &uuid(3).toText(), "--number", "4" };
    try testing.expectEqual(expected.len, arguments.count);
    for (expected, 0..) |word, index| try testing.expectEqualStrings(word, arguments.word(index));
    try testing.expectEqual(null, arguments.words[expected.len]);
    for ([_]Order{
        .{ .id = uuid(1), .kind = "merge", .versionId = uuid(2), .number = 1 },
        .{ .id = uuid(1), .kind = "merge", .intoVersionId = uuid(2), .number = 1 },
        .{ .id = uuid(1), .kind = "merge", .versionId = uuid(2), .intoVersionId = uuid(3) },
        .{ .id = uuid(1), .kind = "merge", .versionId = uuid(2), .intoVersionId = uuid(3), .number = 1 << 32 },
        .{ .id = uuid(1), .kind = "delete" },
        .{ .id = uuid(1), .kind = "defragment" },
    }) |order| try testing.expect(write(&arguments, "p", "/s", &order) != null);
}

test "the longest command line of a job fits" {
    var arguments: Arguments = .{};
    const store_path: [Arguments.store_path_size_max]u8 = @splat('s');
    const program: [64]u8 = @splat('p');
    const order: Order = .{
        .id = uuid(1),
        .kind = "merge",
        .vdiskId = uuid(9),
        .versionId = uuid(2),
        .intoVersionId = uuid(3),
        .number = std.math.maxInt(u32),
        .parentVersionId = uuid(4),
    };
    try testing.expectEqual(null, write(&arguments, &program, &store_path, &order));
}

test "lines of a job are read, and what is none is ignored" {
    const progress = parse("{\"progressBytes\":5,\"totalBytes\":9,\"message\":\"a\\u001bb\",\"new\":1}").?.progress;
    try testing.expectEqual(5, progress.done_bytes);
    try testing.expectEqual(9, progress.total_bytes);
    try testing.expectEqualStrings("a?b", progress.message.constSlice());
    try testing.expectEqualStrings("disk full", parse("{\"error\":\"disk full\"}").?.failed.constSlice());
    try testing.expectEqual(0, parse("{\"done\":true}").?.done.count);
    const made = "{\"versionId\":\"11111111-1111-4111-8111-111111111111\",\"root\":\"q6urq6urq6urq6urq6urq6urq6urq6urq6urq6urq6s=\",\"counter\":3,\"sizeBytes\":4096}";
    try testing.expectEqualStrings(made, parse("{\"done\":true,\"made\":" ++ made ++ "}").?.done.constSlice());
    try testing.expectEqual(.failed, std.meta.activeTag(parse("{\"done\":true,\"made\":{\"versionId\":\"11111111-1111-4111-8111-111111111111\",\"root\":\"x\",\"counter\":3,\"sizeBytes\":4096}}").?));
    for ([_][]const u8{ "", "{", "[]", "7", "{}", "{\"progressBytes\":-1}", "{\"progressBytes\":9007199254740992}", "\x00\xff", "{\"damaged\":\"x\"}" }) |text|
        try testing.expectEqual(null, parse(text));
    const deep: [line_size_max]u8 = @splat('[');
    try testing.expectEqual(null, parse(&deep));
}

test "the longest version that was made fits" {
    var buffer: [line_size_max]u8 = undefined;
    const quotes: [1024]u8 = @splat('"');
    const hash: [64]u8 = @splat('a');
    var writer: std.Io.Writer = .fixed(&buffer);
    const file: BundleFile = .{ .sha256 = &hash, .sizeBytes = number_max };
    try std.json.Stringify.value(.{ .done = true, .made = MadeVersion{
        .versionId = uuid(1),
        .root = "q6urq6urq6urq6urq6urq6urq6urq6urq6urq6urq6s=",
        .counter = number_max,
        .sizeBytes = number_max,
        .commandLine = &quotes,
        .kernel = file,
        .initrd = file,
    } }, .{}, &writer);
    try testing.expect(parse(writer.buffered()).?.done.count > 2048);
}

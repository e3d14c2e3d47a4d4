//! The program that an edge ran before the present one, kept in the data directory until the
//! present one has passed its probation (core/update/probation.zig). The installed program lies
//! where this edge may not write: what it refuses, it remembers by its hash.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const sys = @import("../sys.zig");
const linux = std.os.linux;
const Io = std.Io;
const Record = core.update.Probation.Record;

pub const program_name = "former-program";
const record_name = "probation";
const rejected_name = "rejected-program";
/// As large as no program of this edge.
const program_size_max = 256 << 20;
const answer_limit_s = 5;

pub const FormerProgram = @This();

io: Io,
dir: Io.Dir,

/// How the present program was started.
pub const Start = union(enum) {
    plain,
    probation: Record,
    /// This program failed: the former one is to run.
    failed,
};

/// Counts this start, if the present program is on probation.
pub fn begin(former: FormerProgram, running_path: []const u8) Start {
    var buffer: [Record.size_max + 1]u8 = undefined;
    // An edge serves: without a former program it runs the present one, whatever happened.
    former.dir.access(former.io, program_name, .{}) catch return .plain;
    const text = former.dir.readFile(former.io, record_name, &buffer) catch
        return if (former.isRejected(running_path)) .failed else .plain;
    var record = Record.parse(text) orelse return .plain;
    if (!record.start()) {
        former.reject(running_path);
        return .failed;
    }
    former.put(&record) catch return .plain;
    return .{ .probation = record };
}

/// Keeps the running program, so that there is one to return to. Takes as long as the disk needs.
pub fn keep(former: FormerProgram, running_path: []const u8) bool {
    return former.copy(running_path) catch false;
}

fn copy(former: FormerProgram, running_path: []const u8) !bool {
    const running = try Io.Dir.cwd().openFile(former.io, running_path, .{});
    defer running.close(former.io);
    const flags: linux.O = .{ .ACCMODE = .WRONLY, .CREAT = true, .TRUNC = true, .CLOEXEC = true };
    const new_name = program_name ++ ".new";
    const fd: i32 = @intCast(
        try sys.check(linux.openat(former.dir.handle, new_name, flags, 0o700)),
    );
    defer sys.close(fd);
    var left: usize = program_size_max;
    while (left > 0) {
        const size = try sys.check(linux.sendfile(fd, running.handle, null, @min(left, 1 << 20)));
        if (size == 0) break;
        left -= size;
    }
    if (left == 0) return false;
    _ = try sys.check(linux.fsync(fd));
    try former.dir.rename(new_name, former.dir, program_name, former.io);
    return true;
}

/// The next start is that of a program on probation.
pub fn put(former: FormerProgram, record: *const Record) !void {
    var buffer: [Record.size_max]u8 = undefined;
    try former.write(record_name, record.write(&buffer));
}

/// Its program was left, and the former one takes its place.
pub fn endProbation(former: FormerProgram) void {
    former.dir.deleteFile(former.io, record_name) catch {};
}

pub fn pass(former: FormerProgram) void {
    for ([_][]const u8{ record_name, program_name, rejected_name }) |name|
        former.dir.deleteFile(former.io, name) catch {};
}

/// Remembers the program at this path as one that must not run here again.
pub fn reject(former: FormerProgram, path: []const u8) void {
    const digest = hashOf(former.io, path) catch return;
    const text = std.fmt.bytesToHex(&digest, .lower);
    former.write(rejected_name, &text) catch return;
    former.dir.deleteFile(former.io, record_name) catch {};
}

pub fn isRejected(former: FormerProgram, path: []const u8) bool {
    var buffer: [65]u8 = undefined;
    const text = former.dir.readFile(former.io, rejected_name, &buffer) catch return false;
    const digest = hashOf(former.io, path) catch return false;
    return std.mem.eql(u8, text, &std.fmt.bytesToHex(&digest, .lower));
}

/// Returns whether the program at this path starts on this machine and names its version; that
/// must be `version`, unless it is null.
pub fn starts(gpa: std.mem.Allocator, io: Io, path: []const u8, version: ?[]const u8) bool {
    var buffer: [answer_size_max]u8 = undefined;
    const named = answer(gpa, io, &.{ path, "version" }, &buffer) orelse return false;
    _ = std.SemanticVersion.parse(named) catch return false;
    return if (version) |expected| std.mem.eql(u8, named, expected) else true;
}

/// The command that names the formats in which a program takes write caches over, one a line.
pub const formats_command = "handover-formats";

/// Returns whether the program at this path takes write caches over in this format.
pub fn takesCaches(gpa: std.mem.Allocator, io: Io, path: []const u8, format: u32) bool {
    var buffer: [answer_size_max]u8 = undefined;
    const named = answer(gpa, io, &.{ path, formats_command }, &buffer) orelse return false;
    var lines = std.mem.splitScalar(u8, named, '\n');
    while (lines.next()) |line|
        if (std.fmt.parseInt(u32, line, 10) catch continue == format) return true;
    return false;
}

const answer_size_max = 256;

/// Returns what a program prints that ends well, without the last line feed.
fn answer(
    gpa: std.mem.Allocator,
    io: Io,
    argv: []const []const u8,
    buffer: *[answer_size_max]u8,
) ?[]const u8 {
    const result = std.process.run(gpa, io, .{
        .argv = argv,
        .stdout_limit = .limited(answer_size_max),
        .stderr_limit = .limited(4096),
        .timeout = .{ .duration = .{ .raw = .fromSeconds(answer_limit_s), .clock = .awake } },
    }) catch return null;
    defer gpa.free(result.stdout);
    defer gpa.free(result.stderr);
    if (result.term != .exited or result.term.exited != 0) return null;
    const text = std.mem.trim(u8, result.stdout, "\n");
    @memcpy(buffer[0..text.len], text);
    return buffer[0..text.len];
}

fn write(former: FormerProgram, comptime name: []const u8, bytes: []const u8) !void {
    try former.dir.writeFile(former.io, .{ .sub_path = name ++ ".new", .data = bytes });
    try former.dir.rename(name ++ ".new", former.dir, name, former.io);
}

fn hashOf(io: Io, path: []const u8) !base.Sha256.Digest {
    const file = try Io.Dir.cwd().openFile(io, path, .{});
    defer file.close(io);
    var hash: base.Sha256 = .init(.{});
    var buffer: [64 << 10]u8 = undefined;
    var offset: u64 = 0;
    while (offset < program_size_max) {
        const size = try sys.readAt(file.handle, &buffer, offset);
        if (size == 0) break;
        hash.update(buffer[0..size]);
        offset += size;
    }
    return hash.finalResult();
}

const testing = std.testing;

const Fixture = struct {
    tmp: testing.TmpDir,
    former: FormerProgram,
    path_buffer: [4096]u8 = undefined,
    path: []const u8 = "",

    fn init(fixture: *Fixture) !void {
        fixture.* = .{ .tmp = testing.tmpDir(.{}), .former = undefined };
        fixture.former = .{ .io = testing.io, .dir = fixture.tmp.dir };
        try fixture.install("#!/bin/sh\necho 1.2.3\n");
        const size = try fixture.tmp.dir.realPathFile(testing.io, "edge", &fixture.path_buffer);
        fixture.path = fixture.path_buffer[0..size];
    }

    fn deinit(fixture: *Fixture) void {
        fixture.tmp.cleanup();
    }

    fn install(fixture: *Fixture, text: []const u8) !void {
        try fixture.tmp.dir.writeFile(testing.io, .{
            .sub_path = "edge",
            .data = text,
            .flags = .{ .permissions = .executable_file },
        });
    }
};

test "a program that starts a second time on probation is refused from then on, another one is not" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    const former = fixture.former;
    try testing.expectEqual(.plain, former.begin(fixture.path));
    try former.put(&.{ .was_accepted = true });
    try testing.expectEqual(.plain, former.begin(fixture.path));
    try testing.expect(former.keep(fixture.path));
    try testing.expectEqualDeep(
        Start{ .probation = .{ .was_accepted = true, .starts = 1 } },
        former.begin(fixture.path),
    );
    try testing.expectEqual(.failed, former.begin(fixture.path));
    try testing.expectEqual(.failed, former.begin(fixture.path));
    try fixture.install("another");
    try testing.expectEqual(.plain, former.begin(fixture.path));
}

test "a program that passed leaves nothing behind" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    const former = fixture.former;
    try testing.expect(former.keep(fixture.path));
    try former.put(&.{ .was_accepted = false });
    former.pass();
    try testing.expectEqual(.plain, former.begin(fixture.path));
    try testing.expectError(error.FileNotFound, former.dir.access(testing.io, program_name, .{}));
}

test "the kept program is the one that ran, and can be executed" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    try testing.expect(fixture.former.keep(fixture.path));
    try fixture.install("another");
    var buffer: [4096]u8 = undefined;
    const size = try fixture.tmp.dir.realPathFile(testing.io, program_name, &buffer);
    try testing.expect(starts(testing.allocator, testing.io, buffer[0..size], null));
    try testing.expect(!fixture.former.keep("/nonexistent"));
}

test "only a program that names its version may take over" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    for ([_]?[]const u8{ null, "1.2.3" }) |version|
        try testing.expect(starts(testing.allocator, testing.io, fixture.path, version));
    try testing.expect(!starts(testing.allocator, testing.io, fixture.path, "1.2.4"));
    const unfit = [_][]const u8{
        "#!/bin/sh\necho 1.2.3\nexit 1\n", "#!/bin/sh\necho no version\n",
        "no program",                      "#!/bin/sh\nkill -9 $$\n",
    };
    for (unfit) |text| {
        try fixture.install(text);
        try testing.expect(!starts(testing.allocator, testing.io, fixture.path, null));
    }
}

test "only a program that names the format takes write caches over" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    const Case = struct { text: []const u8, takes: bool };
    for ([_]Case{
        .{ .text = "#!/bin/sh\necho 7\n", .takes = true },
        .{ .text = "#!/bin/sh\necho 6\necho 7\n", .takes = true },
        .{ .text = "#!/bin/sh\necho 77\necho 6\n", .takes = false },
        .{ .text = "#!/bin/sh\necho 7\nexit 2\n", .takes = false },
        // A release that knows no such command prints nothing, and fails.
        .{ .text = "#!/bin/sh\nexit 2\n", .takes = false },
        .{ .text = "#!/bin/sh\ntest \"$1\" = version && echo 7\n", .takes = false },
        .{ .text = "no program", .takes = false },
    }) |case| {
        try fixture.install(case.text);
        try testing.expectEqual(
            case.takes,
            takesCaches(testing.allocator, testing.io, fixture.path, 7),
        );
    }
}

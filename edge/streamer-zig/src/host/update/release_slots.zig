//! The releases in the data directory: the one that was fetched and verified, the one that runs in
//! place of the installed program, and the record of the last. The program before them is
//! files/former_program.zig's.

const std = @import("std");
const core = @import("core");
const sys = @import("../sys.zig");
const FormerProgram = @import("../files/former_program.zig");
const linux = std.os.linux;
const Io = std.Io;
const Record = core.update.Record;

/// Runs in place of the installed program.
pub const program_name = "updated-program";
/// Verified, and waits to take over.
pub const next_name = "updated-program.next";
const part_name = "updated-program.part";
const record_name = "update";

pub const ReleaseSlots = @This();

io: Io,
dir: Io.Dir,

/// The program that a service manager's start of the installed one continues as.
pub const Choice = enum { installed, updated };

pub fn record(slots: ReleaseSlots, arena: std.mem.Allocator) ?Record {
    const limit: Io.Limit = .limited(Record.size_max);
    const text = slots.dir.readFileAlloc(slots.io, record_name, arena, limit) catch return null;
    return Record.parse(arena, text);
}

/// `version` is that of the installed program, which a service manager has just started.
pub fn choose(slots: ReleaseSlots, arena: std.mem.Allocator, version: []const u8) Choice {
    const last = slots.record(arena) orelse return .installed;
    slots.dir.access(slots.io, program_name, .{}) catch return .installed;
    switch (last.choose(version)) {
        .forget => {
            slots.forget();
            return .installed;
        },
        .leave => slots.leave(&last, .ended),
        .release => {},
    }
    return .updated;
}

/// Takes over the fetched program; the present one was kept before.
pub fn install(slots: ReleaseSlots, new: *const Record) !void {
    try slots.write(new);
    try slots.dir.rename(next_name, slots.dir, program_name, slots.io);
}

/// Gives the place of the release back to the program before it, where that was kept.
pub fn leave(slots: ReleaseSlots, last: *const Record, cause: Record.Cause) void {
    var failed = last.*;
    failed.fail(cause);
    slots.keep(&failed);
    const former = FormerProgram.program_name;
    slots.dir.rename(former, slots.dir, program_name, slots.io) catch {};
    (FormerProgram{ .io = slots.io, .dir = slots.dir }).endProbation();
}

/// What became of a release. Where the disk does not take it, the next start finds it on probation.
pub fn keep(slots: ReleaseSlots, last: *const Record) void {
    slots.write(last) catch {};
}

fn forget(slots: ReleaseSlots) void {
    for ([_][]const u8{ record_name, program_name, next_name }) |name|
        slots.dir.deleteFile(slots.io, name) catch {};
}

fn write(slots: ReleaseSlots, new: *const Record) !void {
    var buffer: [Record.size_max]u8 = undefined;
    const new_name = record_name ++ ".new";
    const flags: linux.O = .{ .ACCMODE = .WRONLY, .CREAT = true, .TRUNC = true, .CLOEXEC = true };
    const fd: i32 = @intCast(
        try sys.check(linux.openat(slots.dir.handle, new_name, flags, 0o600)),
    );
    defer sys.close(fd);
    try sys.writeAll(fd, new.write(&buffer));
    _ = try sys.check(linux.fsync(fd));
    try slots.dir.rename(new_name, slots.dir, record_name, slots.io);
}

/// A program that is being fetched.
pub const Part = struct {
    slots: ReleaseSlots,
    fd: i32,

    pub fn begin(slots: ReleaseSlots) sys.Error!Part {
        const flags: linux.O =
            .{ .ACCMODE = .WRONLY, .CREAT = true, .TRUNC = true, .CLOEXEC = true };
        return .{ .slots = slots, .fd = @intCast(
            try sys.check(linux.openat(slots.dir.handle, part_name, flags, 0o700)),
        ) };
    }

    pub fn append(part: *const Part, bytes: []const u8) sys.Error!void {
        return sys.writeAll(part.fd, bytes);
    }

    /// The program is whole and verified.
    pub fn end(part: *Part) !void {
        _ = try sys.check(linux.fsync(part.fd));
        const slots = part.slots;
        try slots.dir.rename(part_name, slots.dir, next_name, slots.io);
    }

    pub fn close(part: *Part) void {
        sys.close(part.fd);
        part.slots.dir.deleteFile(part.slots.io, part_name) catch {};
    }
};

const testing = std.testing;

const Fixture = struct {
    tmp: testing.TmpDir,
    arena: std.heap.ArenaAllocator,
    slots: ReleaseSlots,

    fn init() Fixture {
        const tmp = testing.tmpDir(.{});
        return .{
            .tmp = tmp,
            .arena = .init(testing.allocator),
            .slots = .{ .io = testing.io, .dir = tmp.dir },
        };
    }

    fn deinit(fixture: *Fixture) void {
        fixture.arena.deinit();
        fixture.tmp.cleanup();
    }

    fn put(fixture: *Fixture, name: []const u8, text: []const u8) !void {
        try fixture.tmp.dir.writeFile(testing.io, .{ .sub_path = name, .data = text });
    }

    fn expectProgram(fixture: *Fixture, text: []const u8) !void {
        var buffer: [64]u8 = undefined;
        try testing.expectEqualStrings(
            text,
            try fixture.tmp.dir.readFile(testing.io, program_name, &buffer),
        );
    }

    fn choose(fixture: *Fixture, version: []const u8) Choice {
        return fixture.slots.choose(fixture.arena.allocator(), version);
    }
};

const sample: Record =
    .{ .version = "0.2.0", .attempt = 4, .installed = "0.1.0", .outcome = .probation };

test "a release that has passed runs at each start, until another program is installed" {
    var fixture: Fixture = .init();
    defer fixture.deinit();
    try testing.expectEqual(.installed, fixture.choose("0.1.0"));
    try fixture.put(next_name, "new");
    try fixture.slots.install(&sample);
    var passed = sample;
    passed.outcome = .healthy;
    fixture.slots.keep(&passed);
    for (0..2) |_| try testing.expectEqual(.updated, fixture.choose("0.1.0"));
    try fixture.expectProgram("new");
    try testing.expectEqual(.installed, fixture.choose("0.1.1"));
    try testing.expectEqual(.installed, fixture.choose("0.1.0"));
}

test "a release that ended on probation gives its place back, and says so" {
    var fixture: Fixture = .init();
    defer fixture.deinit();
    try fixture.put(FormerProgram.program_name, "old");
    try fixture.put(next_name, "new");
    try fixture.slots.install(&sample);
    try testing.expectEqual(.updated, fixture.choose("0.1.0"));
    try fixture.expectProgram("old");
    const failed = fixture.slots.record(fixture.arena.allocator()).?;
    try testing.expectEqual(.failed, failed.outcome);
    try testing.expectEqual(.ended, failed.cause.?);
    try testing.expectEqual(4, failed.attempt);
    // And it stays so.
    try testing.expectEqual(.updated, fixture.choose("0.1.0"));
    try fixture.expectProgram("old");
}

test "a part that was not finished is no program" {
    var fixture: Fixture = .init();
    defer fixture.deinit();
    var part: Part = try .begin(fixture.slots);
    try part.append("half");
    part.close();
    try testing.expectError(error.FileNotFound, fixture.slots.install(&sample));
    var whole: Part = try .begin(fixture.slots);
    try whole.append("whole");
    try whole.end();
    whole.close();
    try fixture.slots.install(&sample);
    try fixture.expectProgram("whole");
}

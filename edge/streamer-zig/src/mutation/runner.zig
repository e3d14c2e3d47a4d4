//! Runs the tests of a module against mutants: the test runner of the mutated copy that
//! `mutate.zig` makes. Each test is run once without a mutant, which shows the mutants that it
//! reaches and its time; then each mutant is run by the tests that reach it, quickest first, until
//! one fails. Every run is a process of its own with limits of time and memory. Prints a line for
//! each mutant; exit code 1: a test fails without a mutant.
//!
//!     runner FILE       with the number of sites and the mutants' ids, one a line

const std = @import("std");
const builtin = @import("builtin");
const linux = std.os.linux;
const testing = std.testing;

pub const std_options: std.Options = .{ .logFn = log, .enable_segfault_handler = false };

const active = @extern(*u32, .{ .name = "bootfarm_mutation_active" });
const reached = @extern(*?[*]u8, .{ .name = "bootfarm_mutation_reached" });

/// A mutant may make a test this much slower before it counts as found.
const slowdown_max = 10;
const extra_us = 1 * std.time.us_per_s;
/// A test that waits for ever uses no processor time.
const wall_us_max = 20 * std.time.us_per_s;
const unmutated_us_max = 300 * std.time.us_per_s;
const memory_max = 4 << 30;

var logged_errors: usize = 0;
var is_test = false;

/// A mutant that panics is found: no trace is needed, and printing one takes longer than the test.
pub const panic = std.debug.FullPanic(endAtOnce);

fn endAtOnce(message: []const u8, first_address: ?usize) noreturn {
    if (is_test) linux.exit_group(1);
    std.debug.defaultPanic(message, first_address);
}

fn log(
    comptime level: std.log.Level,
    comptime _: @EnumLiteral(),
    comptime _: []const u8,
    _: anytype,
) void {
    if (level == .err) logged_errors += 1;
}

const Outcome = enum { passed, failed, skipped, too_slow };

const Measured = struct { test_index: u32, us: u64, reached: []u8 };

pub fn main(init: std.process.Init) !u8 {
    const arena = init.arena.allocator();
    const arguments = try init.minimal.args.toSlice(arena);
    const cwd = std.Io.Dir.cwd();
    const list = try cwd.readFileAlloc(init.io, arguments[1], arena, .limited(1 << 20));
    var lines = std.mem.tokenizeScalar(u8, list, '\n');
    const sites = try std.fmt.parseInt(u32, lines.next().?, 10);
    const shared = try std.posix.mmap(
        null,
        sites + 1,
        .{ .READ = true, .WRITE = true },
        .{ .TYPE = .SHARED, .ANONYMOUS = true },
        -1,
        0,
    );
    reached.* = shared.ptr;
    var out: std.Io.File.Writer = .initStreaming(.stdout(), init.io, try arena.alloc(u8, 4096));
    var exit_code: u8 = 0;
    var measured: std.ArrayList(Measured) = .empty;
    for (builtin.test_functions, 0..) |test_function, index| {
        @memset(shared, 0);
        var us: u64 = 0;
        switch (run(init.minimal, index, unmutated_us_max, &us)) {
            .passed => try measured.append(arena, .{
                .test_index = @intCast(index),
                .us = us,
                .reached = try arena.dupe(u8, shared),
            }),
            .skipped => {},
            .failed, .too_slow => |outcome| {
                try out.interface.print("unmutated\t{t}\t{s}\n", .{ outcome, test_function.name });
                exit_code = 1;
            },
        }
    }
    std.sort.insertion(Measured, measured.items, {}, isQuicker);
    reached.* = null;
    while (lines.next()) |line| {
        const id = try std.fmt.parseInt(u32, line, 10);
        active.* = id;
        try runMutant(init.minimal, id, measured.items, &out.interface);
        try out.interface.flush();
    }
    try out.interface.flush();
    return exit_code;
}

fn isQuicker(_: void, a: Measured, b: Measured) bool {
    return a.us < b.us;
}

fn runMutant(
    init: std.process.Init.Minimal,
    id: u32,
    measured: []const Measured,
    out: *std.Io.Writer,
) !void {
    var runs: u32 = 0;
    for (measured) |*one| {
        if (one.reached[id] == 0) continue;
        runs += 1;
        var us: u64 = 0;
        const outcome = run(init, one.test_index, slowdown_max * one.us + extra_us, &us);
        if (outcome == .passed) continue;
        const name = builtin.test_functions[one.test_index].name;
        return out.print("{d}\tkilled\t{d}\t{t}\t{s}\n", .{ id, runs, outcome, name });
    }
    try out.print("{d}\t{s}\t{d}\n", .{ id, if (runs == 0) "unreached" else "survived", runs });
}

/// Runs a test in a process of its own; `us` becomes the processor time that it took.
fn run(init: std.process.Init.Minimal, index: usize, us_max: u64, us: *u64) Outcome {
    const pid: i32 = @intCast(@as(isize, @bitCast(linux.fork())));
    if (pid < 0) @panic("fork");
    if (pid == 0) runHere(init, index, us_max);
    var status: i32 = 0;
    var usage: linux.rusage = undefined;
    while (linux.errno(linux.wait4(pid, &status, 0, &usage)) == .INTR) {}
    us.* = microseconds(usage.utime) + microseconds(usage.stime);
    const bits: u32 = @bitCast(status);
    if (!linux.W.IFEXITED(bits)) return switch (linux.W.TERMSIG(bits)) {
        .ALRM, .PROF => .too_slow,
        else => .failed,
    };
    return switch (linux.W.EXITSTATUS(bits)) {
        0 => .passed,
        2 => .skipped,
        else => .failed,
    };
}

fn microseconds(time: linux.timeval) u64 {
    return @as(u64, @intCast(time.sec)) * std.time.us_per_s + @as(u64, @intCast(time.usec));
}

fn runHere(init: std.process.Init.Minimal, index: usize, us_max: u64) noreturn {
    is_test = true;
    const nowhere: i32 = @intCast(linux.open("/dev/null", .{ .ACCMODE = .RDWR }, 0));
    for (0..3) |handle| _ = linux.dup2(nowhere, @intCast(handle));
    _ = linux.setrlimit(.CORE, &.{ .cur = 0, .max = 0 });
    _ = linux.setrlimit(.AS, &.{ .cur = memory_max, .max = memory_max });
    endAfter(.PROF, us_max);
    endAfter(.REAL, us_max + wall_us_max);
    testing.environ = init.environ;
    testing.allocator_instance = .init(std.heap.page_allocator, .{
        .canary = 0xc3a701ba,
        .check_write_after_free = true,
    });
    testing.io_instance = .init(testing.allocator, .{
        .argv0 = .init(init.args),
        .environ = init.environ,
    });
    builtin.test_functions[index].func() catch |err| linux.exit_group(if (err == error.SkipZigTest) 2 else 1);
    testing.io_instance.deinit();
    const leaks = testing.allocator_instance.deinit();
    linux.exit_group(@intFromBool(leaks != 0 or logged_errors != 0));
}

/// Ends this process by a signal after so much of its time.
fn endAfter(timer: linux.ITIMER, us: u64) void {
    // The kernel takes microseconds here, whatever the type says.
    const value: linux.itimerspec = .{
        .it_interval = .{ .sec = 0, .nsec = 0 },
        .it_value = .{
            .sec = @intCast(us / std.time.us_per_s),
            .nsec = @intCast(us % std.time.us_per_s),
        },
    };
    _ = linux.setitimer(@backingInt(timer), &value, null);
}

//! Runs the tests of a module against mutants: the test runner of the mutated copy that
//! `mutate.zig` makes. Each test is run once without a mutant, which shows the mutants that it
//! reaches and its time; then each mutant is run by the tests that reach it, quickest first, until
//! one fails, in a process with limits of time and memory. Prints a line for each mutant; exit code
//! 1: a test fails without a mutant.
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

const Measured = struct { run: Run, reached: []u8 };

/// A test and the processor time that it may take.
const Run = struct { test_index: u32, us_max: u64 };

/// Runs of the last process that began; the newest one is where it ended.
var begun: *u32 = undefined;

pub fn main(init: std.process.Init) !u8 {
    const arena = init.arena.allocator();
    const arguments = try init.minimal.args.toSlice(arena);
    const cwd = std.Io.Dir.cwd();
    const list = try cwd.readFileAlloc(init.io, arguments[1], arena, .limited(1 << 20));
    var lines = std.mem.tokenizeScalar(u8, list, '\n');
    const sites = try std.fmt.parseInt(u32, lines.next().?, 10);
    const shared = try mapShared(sites + 1);
    begun = @ptrCast(try mapShared(@sizeOf(u32)));
    reached.* = shared.ptr;
    var out: std.Io.File.Writer = .initStreaming(.stdout(), init.io, try arena.alloc(u8, 4096));
    var exit_code: u8 = 0;
    var measured: std.ArrayList(Measured) = .empty;
    for (builtin.test_functions, 0..) |test_function, index| {
        @memset(shared, 0);
        const alone: Run = .{ .test_index = @intCast(index), .us_max = unmutated_us_max };
        const ended = run(init.minimal, &.{alone});
        switch (ended.outcome) {
            .passed => try measured.append(arena, .{
                .run = .{
                    .test_index = alone.test_index,
                    .us_max = slowdown_max * ended.us + extra_us,
                },
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
    const runs = try arena.alloc(Run, measured.items.len);
    while (lines.next()) |line| {
        const id = try std.fmt.parseInt(u32, line, 10);
        active.* = id;
        var count: usize = 0;
        for (measured.items) |*one| if (one.reached[id] != 0) {
            runs[count] = one.run;
            count += 1;
        };
        try runMutant(init.minimal, id, runs[0..count], &out.interface);
        try out.interface.flush();
    }
    try out.interface.flush();
    return exit_code;
}

fn mapShared(size: usize) ![]align(std.heap.page_size_min) u8 {
    return std.posix.mmap(
        null,
        size,
        .{ .READ = true, .WRITE = true },
        .{ .TYPE = .SHARED, .ANONYMOUS = true },
        -1,
        0,
    );
}

fn isQuicker(_: void, a: Measured, b: Measured) bool {
    return a.run.us_max < b.run.us_max;
}

fn runMutant(
    init: std.process.Init.Minimal,
    id: u32,
    runs: []const Run,
    out: *std.Io.Writer,
) !void {
    if (runs.len == 0) return out.print("{d}\tunreached\t0\n", .{id});
    const ended = run(init, runs);
    if (ended.outcome == .passed) return out.print("{d}\tsurvived\t{d}\n", .{ id, runs.len });
    const name = builtin.test_functions[runs[begun.* - 1].test_index].name;
    try out.print("{d}\tkilled\t{d}\t{t}\t{s}\n", .{ id, begun.*, ended.outcome, name });
}

const Ended = struct {
    outcome: Outcome,
    /// Processor time.
    us: u64,
};

/// Runs tests one after the other in a process, until one fails.
fn run(init: std.process.Init.Minimal, runs: []const Run) Ended {
    begun.* = 0;
    const pid: i32 = @intCast(@as(isize, @bitCast(linux.fork())));
    if (pid < 0) @panic("fork");
    if (pid == 0) runHere(init, runs);
    var status: i32 = 0;
    var usage: linux.rusage = undefined;
    while (linux.errno(linux.wait4(pid, &status, 0, &usage)) == .INTR) {}
    const bits: u32 = @bitCast(status);
    return .{
        .outcome = if (linux.W.IFEXITED(bits)) switch (linux.W.EXITSTATUS(bits)) {
            0 => .passed,
            2 => .skipped,
            else => .failed,
        } else switch (linux.W.TERMSIG(bits)) {
            .ALRM, .PROF => .too_slow,
            else => .failed,
        },
        .us = microseconds(usage.utime) + microseconds(usage.stime),
    };
}

fn microseconds(time: linux.timeval) u64 {
    return @as(u64, @intCast(time.sec)) * std.time.us_per_s + @as(u64, @intCast(time.usec));
}

fn runHere(init: std.process.Init.Minimal, runs: []const Run) noreturn {
    is_test = true;
    const nowhere: i32 = @intCast(linux.open("/dev/null", .{ .ACCMODE = .RDWR }, 0));
    for (0..3) |handle| _ = linux.dup2(nowhere, @intCast(handle));
    _ = linux.setrlimit(.CORE, &.{ .cur = 0, .max = 0 });
    _ = linux.setrlimit(.AS, &.{ .cur = memory_max, .max = memory_max });
    for (runs) |*one| {
        begun.* += 1;
        endAfter(.PROF, one.us_max);
        endAfter(.REAL, one.us_max + wall_us_max);
        runTest(init, one.test_index);
    }
    linux.exit_group(0);
}

/// Returns when the test has passed; ends the process otherwise.
fn runTest(init: std.process.Init.Minimal, index: u32) void {
    testing.environ = init.environ;
    testing.allocator_instance = .init(std.heap.page_allocator, .{
        .canary = 0xc3a701ba,
        .check_write_after_free = true,
    });
    testing.io_instance = .init(testing.allocator, .{
        .argv0 = .init(init.args),
        .environ = init.environ,
    });
    builtin.test_functions[index].func() catch |err| {
        if (err != error.SkipZigTest) linux.exit_group(1);
        if (active.* == 0) linux.exit_group(2);
    };
    testing.io_instance.deinit();
    if (testing.allocator_instance.deinit() != 0 or logged_errors != 0) linux.exit_group(1);
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

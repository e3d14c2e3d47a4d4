//! Collects the steps of this machine's boot: firmware, kernel and initramfs at once, systemd's
//! when it is done. It runs in a separate process that may wait for the disk, never in the one that
//! serves it.

const std = @import("std");
const linux = std.os.linux;
const sys = @import("host").sys;
const console = @import("console.zig");
const sys_time = @import("sys_time.zig");
const firmware_table = @import("timings/firmware_table.zig");
const initramfs_steps = @import("timings/initramfs_steps.zig");
const systemd_times = @import("timings/systemd_times.zig");
const guest_units = @import("core").boot.guest_units;
const account = @import("trace/send.zig");
const StepList = @import("timings/step_list.zig");
const UnitChain = @import("timings/unit_chain.zig");
const outputOf = @import("program_output.zig").outputOf;

const written_by_init = "/run/bootfarm/steps";
const fpdt_folder = "/sys/firmware/acpi/fpdt/boot/";
const fpdt_table = "/sys/firmware/acpi/tables/FPDT";
const systemctl_paths = [_][*:0]const u8{ "/usr/bin/systemctl", "/bin/systemctl" };
/// Exists if systemd is the init (sd_booted(3)).
const systemd_folder = "/run/systemd/system";
/// systemd is polled every second, for as long as a boot may reasonably take.
const finish_limit_us = 10 * std.time.us_per_min;
const look_interval: linux.timespec = .{ .sec = 1, .nsec = 0 };
/// Timeout for the times of all units: half a second of a processor, and most of a minute on a
/// machine that shares one. Nobody waits for them.
const units_limit_us = 5 * std.time.us_per_min;
/// Attempts if systemctl is late or prints nothing.
const unit_looks_max = 3;

/// Space for what `systemctl show` prints of 1000 units; the rest is ignored.
const output_size_max = 512 << 10;

/// What is known when the system reports ready: `system` until now, for any init.
pub fn collectUntilReady(list: *StepList) void {
    const hand_over_us = collectBeforeSystem(list);
    const now_us = sys_time.uptimeUs();
    if (hand_over_us != 0)
        list.add(.init(.system, "until ready", @intCast(hand_over_us), now_us -| hand_over_us));
    list.sort();
}

/// Waits until systemd is done with the boot. Returns false without systemd, or after the timeout.
pub fn collectWithSystemd(list: *StepList, units: *UnitsAccount) bool {
    _ = sys.check(linux.access(systemd_folder, linux.F_OK)) catch return false;
    // Not a part of the program: the process that serves the disk would have it locked in memory.
    const output = std.heap.page_allocator.alloc(u8, output_size_max) catch return false;
    defer std.heap.page_allocator.free(output);
    const times = waitForFinish(output) orelse return false;
    const hand_over_us = collectBeforeSystem(list);
    systemd_times.addManagerSteps(list, times, hand_over_us);
    if (unitTimes(&systemctl_paths, units_limit_us, output)) |text| {
        const slowest: systemd_times.SlowestUnits = .parse(text, times.finish_us);
        slowest.addSteps(list);
        units.collect(text, times.finish_us);
    } else console.say("systemctl does not report how long the units of this boot took", .{});
    list.sort();
    return true;
}

/// The slowest units, and those that waited for one another, as the edge gets them.
pub const UnitsAccount = struct {
    buffer: [guest_units.size_max]u8 = undefined,
    /// 0: there is none.
    size: usize = 0,

    fn collect(units: *UnitsAccount, text: []const u8, finish_us: u64) void {
        const allocator = std.heap.page_allocator;
        const memory = allocator.create(UnitChain.Memory) catch return;
        defer allocator.destroy(memory);
        const found: UnitChain = .parse(text, finish_us, memory);
        units.size = guest_units.write(
            found.slowest[0..found.slowest_count],
            found.chain[0..found.chain_count],
            &units.buffer,
        ).len;
    }

    /// An edge of an earlier release does not take them.
    pub fn send(units: *const UnitsAccount) void {
        if (units.size == 0 or !account.first(.units, guest_units.magic)) return;
        _ = account.rest(.units, units.buffer[0..units.size]);
    }
};

/// Retries while systemd is too busy to answer.
fn waitForFinish(output: []u8) ?systemd_times.ManagerTimes {
    const arguments =
        [_:null]?[*:0]const u8{ "systemctl", "show", "-p", systemd_times.manager_properties };
    const deadline_us = sys.monotonicUs() + finish_limit_us;
    while (true) {
        const left_us = deadline_us -| sys.monotonicUs();
        if (left_us == 0) return null;
        const text = outputOf(&systemctl_paths, &arguments, output, left_us) catch return null;
        const times: systemd_times.ManagerTimes = .parse(text);
        if (times.userspace_us != 0 and times.finish_us != 0) return times;
        _ = linux.nanosleep(&look_interval, null);
    }
}

/// The complete output of `systemctl show` for all units; null if it fails.
fn unitTimes(paths: []const [*:0]const u8, limit_us: u64, output: []u8) ?[]const u8 {
    const arguments = [_:null]?[*:0]const u8{
        "systemctl",
        "show",
        "--all",
        "*.service",
        "*.mount",
        "*.target",
        "*.socket",
        "-p",
        UnitChain.properties,
    };
    for (0..unit_looks_max) |_| {
        const text = outputOf(paths, &arguments, output, limit_us) catch |reason| switch (reason) {
            error.TookTooLong => continue,
            error.CannotRun => return null,
        };
        if (text.len > 0) return text;
        _ = linux.nanosleep(&look_interval, null);
    }
    return null;
}

/// Returns when the initramfs handed over to the system, µs since the kernel's start; 0 if unknown.
fn collectBeforeSystem(list: *StepList) u64 {
    if (firmwareTimes()) |times| firmware_table.addSteps(list, times);
    var buffer: [1024]u8 = undefined;
    return initramfs_steps.addSteps(list, sys.readFile(written_by_init, &buffer) catch "");
}

/// Linux 5.12 and later may show the table as files of numbers; otherwise it is searched in memory,
/// which many kernels forbid.
fn firmwareTimes() ?firmware_table.BootTimes {
    const shown: firmware_table.BootTimes = .{
        .loader_load_ns = numberIn(fpdt_folder ++ "bootloader_load_ns"),
        .loader_launch_ns = numberIn(fpdt_folder ++ "bootloader_launch_ns"),
        .exit_begin_ns = numberIn(fpdt_folder ++ "exitbootservice_start_ns"),
        .exit_end_ns = numberIn(fpdt_folder ++ "exitbootservice_end_ns"),
    };
    if (shown.exit_end_ns != 0) return shown;
    var fpdt: [512]u8 = undefined;
    const address = firmware_table.performanceTableAddress(
        sys.readFile(fpdt_table, &fpdt) catch "",
    ) orelse return null;
    if (address > std.math.maxInt(i64)) return null;
    const fd: i32 =
        @intCast(sys.check(linux.open("/dev/mem", .{ .CLOEXEC = true }, 0)) catch return null);
    defer sys.close(fd);
    var table: [firmware_table.performance_table_size_max]u8 = undefined;
    const size = sys.readAt(fd, &table, address) catch return null;
    return firmware_table.parsePerformanceTable(table[0..size]);
}

/// 0 if there is none.
fn numberIn(path: [*:0]const u8) u64 {
    var buffer: [32]u8 = undefined;
    const text = std.mem.trimEnd(u8, sys.readFile(path, &buffer) catch "", "\n");
    return std.fmt.parseInt(u64, text, 10) catch 0;
}

const testing = std.testing;

test "the times of units are complete or missing, and a systemctl that fails is retried" {
    var folder = testing.tmpDir(.{});
    defer folder.cleanup();
    var buffer: [256]u8 = undefined;
    const path =
        try std.mem.printSentinel(&buffer, ".zig-cache/tmp/{s}/systemctl", .{folder.sub_path}, 0);
    var output: [64]u8 = undefined;
    const second = std.time.us_per_s;
    const programs = [_]struct { text: []const u8, limit_us: u64, says: ?[]const u8 }{
        .{
            .text = "#!/bin/sh\n[ -e $0-asked ] && echo Id=$2 || : >$0-asked\n",
            .limit_us = 60 * second,
            .says = "Id=--all\n",
        },
        .{
            .text = "#!/bin/sh\necho Id=a part\nwhile :; do :; done\n",
            .limit_us = second / 20,
            .says = null,
        },
    };
    for (programs) |program| {
        try folder.dir.writeFile(testing.io, .{
            .sub_path = "systemctl",
            .data = program.text,
            .flags = .{ .permissions = .executable_file },
        });
        const said = unitTimes(&.{path}, program.limit_us, &output);
        try testing.expectEqualDeep(program.says, said);
    }
}

//! Reads how long the firmware took from its performance table (ACPI 6.5, section 5.2.24: FPDT and
//! the Firmware Basic Boot Performance Table, both little endian). Its clock starts with the
//! machine; the kernel's starts where the table's ends, at the end of ExitBootServices. A BIOS
//! without UEFI leaves that at 0: then nothing relates the two clocks.

const std = @import("std");
const StepList = @import("step_list.zig");

/// ns since power-on, as in the table and in /sys/firmware/acpi/fpdt/boot.
pub const BootTimes = struct {
    loader_load_ns: u64,
    loader_launch_ns: u64,
    exit_begin_ns: u64,
    exit_end_ns: u64,
};

/// A larger value is something else.
const end_ns_max = std.time.ns_per_hour;

const table_header_size = 36;
const record_header_size = 4;
const pointer_record_type = 0;
const pointer_record_size = 16;

const performance_header_size = 8;
const performance_record_type = 2;
const performance_record_size = 48;
/// Bytes of the Basic Boot Performance Table that are read.
pub const performance_table_size_max = 512;

/// Adds the steps; nothing if the times contradict each other.
pub fn addSteps(list: *StepList, times: BootTimes) void {
    const end_ns = times.exit_end_ns;
    if (end_ns == 0 or end_ns > end_ns_max) return;
    // Loading may be unknown; launching is not.
    const load_ns = if (times.loader_load_ns != 0) times.loader_load_ns else times.loader_launch_ns;
    if (load_ns == 0) return;
    if (load_ns > times.exit_begin_ns or times.exit_begin_ns > end_ns) return;
    addPart(list, "firmware", 0, load_ns, end_ns);
    addPart(list, "boot loader", load_ns, times.exit_begin_ns, end_ns);
    addPart(list, "exit boot services", times.exit_begin_ns, end_ns, end_ns);
}

fn addPart(list: *StepList, name: []const u8, from_ns: u64, to_ns: u64, kernel_start_ns: u64) void {
    const start_us = -@as(i64, @intCast((kernel_start_ns - from_ns) / std.time.ns_per_us));
    list.add(.init(.firmware, name, start_us, (to_ns - from_ns) / std.time.ns_per_us));
}

/// Address of the Firmware Basic Boot Performance Table, from the table FPDT; null if missing.
pub fn performanceTableAddress(fpdt: []const u8) ?u64 {
    if (fpdt.len < table_header_size or !std.mem.eql(u8, fpdt[0..4], "FPDT")) return null;
    const size = @min(std.mem.readInt(u32, fpdt[4..8], .little), fpdt.len);
    const record = findRecord(
        fpdt[0..size],
        table_header_size,
        pointer_record_type,
        pointer_record_size,
    ) orelse
        return null;
    const address = std.mem.readInt(u64, record[8..16], .little);
    return if (address == 0) null else address;
}

/// The times in the Firmware Basic Boot Performance Table.
pub fn parsePerformanceTable(table: []const u8) ?BootTimes {
    if (table.len < performance_header_size or !std.mem.eql(u8, table[0..4], "FBPT")) return null;
    const size = @min(std.mem.readInt(u32, table[4..8], .little), table.len);
    const record = findRecord(
        table[0..size],
        performance_header_size,
        performance_record_type,
        performance_record_size,
    ) orelse return null;
    return .{
        .loader_load_ns = std.mem.readInt(u64, record[16..24], .little),
        .loader_launch_ns = std.mem.readInt(u64, record[24..32], .little),
        .exit_begin_ns = std.mem.readInt(u64, record[32..40], .little),
        .exit_end_ns = std.mem.readInt(u64, record[40..48], .little),
    };
}

/// Records begin with type 2, length 1 and revision 1.
fn findRecord(
    table: []const u8,
    first: usize,
    record_type: u16,
    comptime size: usize,
) ?*const [size]u8 {
    if (table.len < first) return null;
    var rest = table[first..];
    while (rest.len >= record_header_size) {
        const length = rest[2];
        if (length < record_header_size or length > rest.len) return null;
        if (std.mem.readInt(u16, rest[0..2], .little) == record_type and
            length >= size) return rest[0..size];
        rest = rest[length..];
    }
    return null;
}

const testing = std.testing;
const base = @import("base");
const damage = @import("damaged.zig").damage;
const Step = @import("step_list.zig").Step;

fn performanceTable(times: BootTimes) [performance_header_size + 8 + performance_record_size]u8 {
    var table: [performance_header_size + 8 + performance_record_size]u8 = @splat(0);
    table[0..4].* = "FBPT".*;
    std.mem.writeInt(u32, table[4..8], table.len, .little);
    // Skip a vendor's record.
    table[8..12].* = .{ 0x00, 0x10, 8, 1 };
    const record = table[16..];
    record[0..4].* = .{ performance_record_type, 0, performance_record_size, 2 };
    const fields = [_]u64{
        1,
        times.loader_load_ns,
        times.loader_launch_ns,
        times.exit_begin_ns,
        times.exit_end_ns,
    };
    for (fields, 0..) |value, index| std.mem.writeInt(
        u64,
        record[8 + 8 * index ..][0..8],
        value,
        .little,
    );
    return table;
}

const times_of_tests: BootTimes = .{
    .loader_load_ns = 4_000_000_000,
    .loader_launch_ns = 4_100_000_000,
    .exit_begin_ns = 9_000_000_000,
    .exit_end_ns = 9_250_000_000,
};

test "the firmware's times end where the kernel's begin" {
    var list: StepList = .{};
    addSteps(&list, parsePerformanceTable(&performanceTable(times_of_tests)).?);
    const expected = [_]Step{
        .init(.firmware, "firmware", -9_250_000, 4_000_000),
        .init(.firmware, "boot loader", -5_250_000, 5_000_000),
        .init(.firmware, "exit boot services", -250_000, 250_000),
    };
    try testing.expectEqualSlices(Step, &expected, list.slice());
}

test "contradictory times add nothing" {
    var list: StepList = .{};
    var bios = times_of_tests;
    bios.exit_begin_ns = 0;
    bios.exit_end_ns = 0;
    var backwards = times_of_tests;
    backwards.exit_begin_ns = 1;
    var endless = times_of_tests;
    endless.exit_end_ns = std.math.maxInt(u64);
    var unknown = times_of_tests;
    unknown.loader_load_ns = 0;
    unknown.loader_launch_ns = 0;
    for ([_]BootTimes{ bios, backwards, endless, unknown }) |times| addSteps(&list, times);
    try testing.expectEqual(0, list.count);
}

test "a table that is cut anywhere, or has wrong lengths, is read to its end and not beyond" {
    const table = performanceTable(times_of_tests);
    for (0..table.len) |size| try testing.expectEqual(null, parsePerformanceTable(table[0..size]));
    var endless = table;
    endless[10] = 0;
    try testing.expectEqual(null, parsePerformanceTable(&endless));
    var too_long = table;
    too_long[10] = 255;
    try testing.expectEqual(null, parsePerformanceTable(&too_long));
}

test "FPDT gives the address of the times" {
    var fpdt: [table_header_size + 2 * pointer_record_size]u8 = @splat(0);
    fpdt[0..4].* = "FPDT".*;
    std.mem.writeInt(u32, fpdt[4..8], fpdt.len, .little);
    // The pointer to the table of suspend times comes first here.
    fpdt[36..40].* = .{ 1, 0, 16, 1 };
    fpdt[52..56].* = .{ pointer_record_type, 0, 16, 1 };
    std.mem.writeInt(u64, fpdt[60..68], 0x7f6e_d000, .little);
    try testing.expectEqual(0x7f6e_d000, performanceTableAddress(&fpdt));
    for (0..fpdt.len) |size| try testing.expectEqual(null, performanceTableAddress(fpdt[0..size]));
    std.mem.writeInt(u64, fpdt[60..68], 0, .little);
    try testing.expectEqual(null, performanceTableAddress(&fpdt));
}

test "no table crashes the parser, whatever its bytes are" {
    var prng: base.Prng = .init(1);
    const whole = performanceTable(times_of_tests);
    for (0..20_000) |_| {
        var table = whole;
        damage(&prng, &table, &.{ 0, 1, 2, 3, 4, 255 });
        const size = prng.below(table.len + 1);
        var list: StepList = .{};
        if (parsePerformanceTable(table[0..size])) |times| addSteps(&list, times);
        for (list.slice()) |*step| {
            try testing.expect(step.start_us < 0);
            try testing.expect(step.duration_us <= end_ns_max / std.time.ns_per_us);
        }
        table[0..4].* = "FPDT".*;
        _ = performanceTableAddress(table[0..size]);
    }
}

//! The findings of the doctor: one line each, with what to do about it. The checks add them; the
//! command prints them as text or JSON.

const std = @import("std");
const Allocator = std.mem.Allocator;

pub const Level = enum { ok, warning, problem };

/// What was checked; the names are part of `--json`.
pub const Check = enum {
    rights,
    interface,
    ports,
    dhcp,
    boot_files,
    vdisk,
    store,
    disk_space,
    restart,
    clock,
    firewall,
    identity,
    uplink,
};

pub const Finding = struct { check: Check, level: Level, text: []const u8, remedy: []const u8 };

pub const Findings = @This();

arena: Allocator,
list: std.ArrayList(Finding) = .empty,
/// Counts findings beyond the capacity: nobody reads that many.
left_out: u32 = 0,

pub const count_max = 64;

pub fn ok(
    findings: *Findings,
    check: Check,
    comptime format: []const u8,
    arguments: anytype,
) Allocator.Error!void {
    const text = try std.fmt.allocPrint(findings.arena, format, arguments);
    try findings.add(.{ .check = check, .level = .ok, .text = text, .remedy = "" });
}

/// `Sentence`: what was found, and what to do about it, each with its arguments.
pub fn report(
    findings: *Findings,
    level: Level,
    check: Check,
    text: []const u8,
    remedy: []const u8,
) Allocator.Error!void {
    try findings.add(.{ .check = check, .level = level, .text = text, .remedy = remedy });
}

pub fn print(
    findings: *Findings,
    comptime format: []const u8,
    arguments: anytype,
) Allocator.Error![]const u8 {
    return std.fmt.allocPrint(findings.arena, format, arguments);
}

fn add(findings: *Findings, finding: Finding) Allocator.Error!void {
    if (findings.list.items.len == count_max) {
        findings.left_out += 1;
        return;
    }
    try findings.list.append(findings.arena, finding);
}

pub fn count(findings: *const Findings, level: Level) usize {
    var total: usize = 0;
    for (findings.list.items) |finding| total += @intFromBool(finding.level == level);
    return total;
}

pub fn writeText(findings: *const Findings, writer: *std.Io.Writer) std.Io.Writer.Error!void {
    for (findings.list.items) |finding| {
        try writer.print("{s:<8} {s:<11} {s}\n", .{
            @tagName(finding.level), @tagName(finding.check), finding.text,
        });
        if (finding.remedy.len > 0)
            try writer.print("{s:<8} {s:<11} -> {s}\n", .{ "", "", finding.remedy });
    }
    if (findings.left_out > 0) try writer.print("and {d} more\n", .{findings.left_out});
    const problems = findings.count(.problem);
    const warnings = findings.count(.warning);
    if (problems + warnings == 0)
        return writer.writeAll("Nothing prevents machines from booting.\n");
    try writer.print("{d} problems, {d} warnings.\n", .{ problems, warnings });
}

pub fn writeJson(findings: *const Findings, writer: *std.Io.Writer) std.Io.Writer.Error!void {
    try std.json.Stringify.value(.{
        .ok = findings.count(.problem) == 0,
        .findings = findings.list.items,
    }, .{}, writer);
    try writer.writeByte('\n');
}

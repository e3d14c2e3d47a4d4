//! Reads from an ELF file whether it can run in an initramfs: its processor, and whether it needs a
//! dynamic linker (System V ABI, chapters 4 and 5).

const std = @import("std");

pub const Machine = enum {
    x86_64,
    aarch64,
    /// A processor that no program of ours is built for.
    other,
};

pub const ElfInfo = struct {
    machine: Machine,
    /// It names a dynamic linker, so it does not run without its libraries.
    has_interpreter: bool,
};

/// Sizes of a 64-bit file's header and of one program header.
const header_size = 64;
const program_header_size = 56;
const machine_x86_64 = 62;
const machine_aarch64 = 183;
const program_type_interpreter = 3;

/// `bytes` may be any file; only its headers are read.
pub fn facts(bytes: []const u8) error{NotElf}!ElfInfo {
    if (bytes.len < header_size) return error.NotElf;
    if (!std.mem.eql(u8, bytes[0..4], "\x7fELF")) return error.NotElf;
    const is_64_bit = bytes[4] == 2;
    const is_little_endian = bytes[5] == 1;
    if (!is_64_bit or !is_little_endian) return .{ .machine = .other, .has_interpreter = false };
    return .{
        .machine = switch (std.mem.readInt(u16, bytes[18..20], .little)) {
            machine_x86_64 => .x86_64,
            machine_aarch64 => .aarch64,
            else => .other,
        },
        .has_interpreter = hasInterpreter(bytes),
    };
}

fn hasInterpreter(bytes: []const u8) bool {
    const table_offset = std.mem.readInt(u64, bytes[32..40], .little);
    const count = std.mem.readInt(u16, bytes[56..58], .little);
    for (0..count) |index| {
        const offset = std.math.add(u64, table_offset, index * program_header_size) catch
            return false;
        if (offset > bytes.len or bytes.len - offset < program_header_size) return false;
        const kind = std.mem.readInt(u32, bytes[@intCast(offset)..][0..4], .little);
        if (kind == program_type_interpreter) return true;
    }
    return false;
}

/// Returns the kernel that a module was built for: the first word of its `vermagic`, which is in
/// section `.modinfo` as text ended by a zero byte. Null if there is none.
pub fn moduleRelease(bytes: []const u8) ?[]const u8 {
    const key = "\x00vermagic=";
    const at = std.mem.find(u8, bytes, key) orelse return null;
    const rest = bytes[at + key.len ..];
    const end = std.mem.findAny(u8, rest, " \x00") orelse return null;
    return if (end > 0) rest[0..end] else null;
}

const testing = std.testing;

fn headerOf(machine: u16, program_count: u16) [64]u8 {
    var bytes: [64]u8 = @splat(0);
    @memcpy(bytes[0..4], "\x7fELF");
    bytes[4] = 2;
    bytes[5] = 1;
    std.mem.writeInt(u16, bytes[18..20], machine, .little);
    std.mem.writeInt(u64, bytes[32..40], 64, .little);
    std.mem.writeInt(u16, bytes[56..58], program_count, .little);
    return bytes;
}

test "the processor of a program is recognized" {
    try testing.expectEqual(Machine.x86_64, (try facts(&headerOf(62, 0))).machine);
    try testing.expectEqual(Machine.aarch64, (try facts(&headerOf(183, 0))).machine);
    try testing.expectEqual(Machine.other, (try facts(&headerOf(8, 0))).machine);
    try testing.expectError(error.NotElf, facts("#!/bin/sh\n"));
}

test "a program that names a dynamic linker is recognized" {
    var program: [56]u8 = @splat(0);
    std.mem.writeInt(u32, program[0..4], 3, .little);
    const dynamic = headerOf(62, 1) ++ program;
    try testing.expect((try facts(&dynamic)).has_interpreter);
    program[0] = 1;
    const static = headerOf(62, 1) ++ program;
    try testing.expect(!(try facts(&static)).has_interpreter);
}

test "a module names the kernel it was built for" {
    const module = "\x7fELF\x00license=GPL\x00vermagic=6.1.0-53-amd64 SMP preempt \x00name=nbd\x00";
    try testing.expectEqualStrings("6.1.0-53-amd64", moduleRelease(module).?);
    for ([_][]const u8{
        "",
        "vermagic=6.1 ",
        "\x00vermagic=",
        "\x00vermagic= x",
        "\x00vermagic=6.1",
    }) |other|
        try testing.expectEqual(null, moduleRelease(other));
}

test "program headers beyond the end are not read" {
    var bytes = headerOf(62, 40);
    std.mem.writeInt(u64, bytes[32..40], std.math.maxInt(u64) - 3, .little);
    try testing.expect(!(try facts(&bytes)).has_interpreter);
}

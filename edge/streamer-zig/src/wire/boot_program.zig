//! Identifies a boot program by its content: its kind, its version, the firmware that can start it,
//! and its signers. UEFI programs are PE files; a BIOS boot program is plain code, recognized by
//! the texts in it. It must never trust a file's name.

const std = @import("std");
const base = @import("base");
const authenticode = @import("image/authenticode.zig");
const pe_image = @import("image/pe_image.zig");

pub const size_max = 64 << 20;

/// The firmware that can start it; `any`: none can, other programs load it.
pub const Arch = enum { bios, x64_uefi, arm64_uefi, any };

pub const Kind = enum {
    ipxe,
    shim,
    /// Programs that belong to shim: MokManager and its fallback.
    shim_helper,
    grub,
    pxelinux,
    /// Modules that PXELINUX loads.
    syslinux_module,
    /// Its type was given by hand.
    other,

    /// The name for people.
    pub fn text(kind: Kind) []const u8 {
        return switch (kind) {
            .ipxe => "iPXE",
            .shim => "shim",
            .shim_helper => "shim helper",
            .grub => "GRUB",
            .pxelinux => "PXELINUX",
            .syslinux_module => "Syslinux module",
            .other => "program",
        };
    }
};

pub const Program = struct {
    kind: Kind,
    arch: Arch,
    /// Empty if no version can be read without unpacking the program.
    version: base.UntrustedText = .empty,
    signers: authenticode.Signers = .empty,
};

pub const Problem = error{
    /// Not recognized.
    Unknown,
    /// A UEFI program of an unknown kind.
    UnknownUefi,
    /// A UEFI program for a processor that no device of ours has.
    OtherProcessor,
    /// A UEFI program that ends too early, or whose headers contradict each other.
    Damaged,
};

/// The problem as the end of a sentence that begins with the path.
pub fn sentence(problem: Problem) []const u8 {
    return switch (problem) {
        error.Unknown => "is no boot program that is known " ++
            "(iPXE, shim, GRUB, PXELINUX and what belongs to them)",
        error.UnknownUefi => "is a UEFI program, but none that is known (iPXE, shim, GRUB)",
        error.OtherProcessor => "is a UEFI program for a processor other than x86-64 and arm64",
        error.Damaged => "is a UEFI program that was cut short or damaged",
    };
}

pub fn inspect(bytes: []const u8) Problem!Program {
    const image = pe_image.parse(bytes) catch |problem| return switch (problem) {
        error.NotPe => inspectPlain(bytes),
        error.CutShort, error.Malformed => error.Damaged,
    };
    var program: Program = .{
        .kind = undefined,
        .arch = try archOf(&image),
        .signers = authenticode.signersOf(image.certificates),
    };
    try name(&program, &image);
    return program;
}

/// Returns the architecture of a UEFI program of any kind; for files whose type is given by hand.
pub fn archOf(image: *const pe_image.PeImage) Problem!Arch {
    if (image.subsystem != .efi) return error.UnknownUefi;
    return switch (image.machine) {
        .x86_64 => .x64_uefi,
        .aarch64 => .arm64_uefi,
        .x86, .other => error.OtherProcessor,
    };
}

fn name(program: *Program, image: *const pe_image.PeImage) Problem!void {
    const bytes = image.file;
    // SBAT (https://github.com/rhboot/shim/blob/main/SBAT.md): a line for each component, the
    // program's own before its distributor's.
    const sbat = image.section(".sbat") orelse "";
    if (between(bytes, "UEFI SHIM\n$Version: ", " ")) |version| {
        program.kind = .shim;
        program.version = .init(version);
    } else if (hasComponent(sbat, "shim")) {
        program.kind = .shim_helper;
    } else if (between(bytes, "GNU GRUB  version %s\x00", "\x00")) |version| {
        program.kind = .grub;
        program.version = .init(version);
    } else if (hasComponent(sbat, "grub")) {
        program.kind = .grub;
        program.version = .init(componentVersion(sbat, "grub") orelse "");
    } else if (isIpxe(bytes)) {
        program.kind = .ipxe;
        program.version = ipxeVersion(bytes);
    } else return error.UnknownUefi;
}

fn isIpxe(bytes: []const u8) bool {
    return has(bytes, "iPXE/%s") or has(bytes, "http://ipxe.org/") or
        has(bytes, "https://ipxe.org/");
}

/// `product_version` of iPXE's core/version.c lies behind its short name, in zeros up to where the
/// linker put it.
fn ipxeVersion(bytes: []const u8) base.UntrustedText {
    const zeros_max = 64;
    var at: usize = 0;
    while (std.mem.findPos(u8, bytes, at, "\x00iPXE\x00")) |found| {
        at = found + "\x00iPXE".len;
        const rest = bytes[at..];
        const first = for (rest[0..@min(rest.len, zeros_max)], 0..) |byte, index| {
            if (byte != 0) break index;
        } else continue;
        if (!std.ascii.isDigit(rest[first]) and rest[first] != 'v') continue;
        const version = printable(rest[first..]);
        if (std.mem.findScalar(u8, version, '.') == null) continue;
        return .init(version);
    }
    return .empty;
}

fn printable(bytes: []const u8) []const u8 {
    const kept = bytes[0..@min(bytes.len, base.UntrustedText.size_max)];
    for (kept, 0..) |byte, index| if (!std.ascii.isPrint(byte)) return kept[0..index];
    return kept;
}

fn hasComponent(sbat: []const u8, component: []const u8) bool {
    return sbatLine(sbat, component) != null;
}

/// `component,generation,vendor,package,version,url`
fn componentVersion(sbat: []const u8, component: []const u8) ?[]const u8 {
    var fields = std.mem.splitScalar(u8, sbatLine(sbat, component) orelse return null, ',');
    for (0..4) |_| _ = fields.next();
    return fields.next();
}

fn sbatLine(sbat: []const u8, component: []const u8) ?[]const u8 {
    var lines = std.mem.splitScalar(u8, sbat, '\n');
    while (lines.next()) |line| {
        const first, _ = std.mem.cutScalar(u8, line, ',') orelse continue;
        if (std.mem.eql(u8, first, component)) return line;
    }
    return null;
}

fn inspectPlain(bytes: []const u8) Problem!Program {
    // A BIOS loads it to 0:7c00 and jumps to its begin; it lies below 512 KiB (PXE 2.1, 4.4.5).
    const is_code = bytes.len > 0x100 and bytes.len < 512 << 10 and bytes[0] == 0xea;
    if (is_code) {
        if (between(bytes, "\r\nPXELINUX ", " ")) |version|
            return .{ .kind = .pxelinux, .arch = .bios, .version = .init(version) };
        // What of iPXE is not compressed: the code that takes it apart and speaks with the ROM.
        if (has(bytes, "PXE->EB:") and has(bytes, "!PXE")) return .{ .kind = .ipxe, .arch = .bios };
    }
    // com32 modules of Syslinux 5 and later are shared objects for i386 (System V ABI, chapter 4).
    const is_module = std.mem.startsWith(u8, bytes, "\x7fELF\x01\x01") and bytes.len > 52 and
        std.mem.readInt(u16, bytes[16..18], .little) == 3 and
        std.mem.readInt(u16, bytes[18..20], .little) == 3;
    if (is_module) return .{ .kind = .syslinux_module, .arch = .any };
    return error.Unknown;
}

fn has(bytes: []const u8, text: []const u8) bool {
    return std.mem.find(u8, bytes, text) != null;
}

/// Returns the text between `before` and `end`; null if it is missing, empty or no text.
fn between(bytes: []const u8, before: []const u8, end: []const u8) ?[]const u8 {
    const at = std.mem.find(u8, bytes, before) orelse return null;
    const rest = printable(bytes[at + before.len ..]);
    const text = rest[0 .. std.mem.find(u8, rest, end) orelse rest.len];
    return if (text.len > 0) text else null;
}

const testing = std.testing;

fn expectUefi(machine: u16, text: []const u8, kind: Kind, version: []const u8) !void {
    var buffer: [2048]u8 = undefined;
    var table: [1024]u8 = undefined;
    const certificates = authenticode.testTable(&table, "A Site", true);
    const program = try inspect(pe_image.testImage(&buffer, machine, text, certificates));
    try testing.expectEqual(kind, program.kind);
    try testing.expectEqualStrings(version, program.version.slice());
    try testing.expectEqual(if (machine == 0xaa64) Arch.arm64_uefi else .x64_uefi, program.arch);
    try testing.expectEqualStrings("A Site", program.signers.constSlice()[0].slice());
}

test "UEFI programs are identified by their content, for both processors" {
    for ([_]u16{ 0x8664, 0xaa64 }) |machine| {
        const ipxe = "x\x00iPXE\x00\x00\x00iPXE> \x00iPXE/%s\x00snponly.efi\x00iPXE\x00\x00\x00" ++
            "1.21.1+git\x00";
        try expectUefi(machine, ipxe, .ipxe, "1.21.1+git");
        try expectUefi(machine, "UEFI SHIM\n$Version: 16.1 $\n\x00shim_init", .shim, "16.1");
        try expectUefi(machine, "shim,4,UEFI shim,shim,1,https://github.com/\n", .shim_helper, "");
        try expectUefi(
            machine,
            "GNU GRUB  version %s\x002.06-13+deb12u2\x00",
            .grub,
            "2.06-13+deb12u2",
        );
        try expectUefi(machine, "sbat,1,x\ngrub,5,FSF,grub,2.12,https://gnu.org/\n", .grub, "2.12");
    }
}

test "an unknown file is refused with its reason" {
    var buffer: [2048]u8 = undefined;
    try testing.expectError(error.UnknownUefi, inspect(
        pe_image.testImage(&buffer, 0x8664, "x", ""),
    ));
    try testing.expectError(error.OtherProcessor, inspect(
        pe_image.testImage(&buffer, 0x14c, "iPXE/%s", ""),
    ));
    const whole = pe_image.testImage(&buffer, 0x8664, "iPXE/%s", "");
    try testing.expectError(error.Damaged, inspect(whole[0 .. whole.len - 1]));
    for ([_][]const u8{ "", "MZ", "#!ipxe\n", "\x7fELF", "PXELINUX 6.04 " }) |bytes|
        try testing.expectError(error.Unknown, inspect(bytes));
}

test "a BIOS program is identified by its texts" {
    var bytes: [1024]u8 = @splat(0);
    bytes[0] = 0xea;
    try testing.expectError(error.Unknown, inspect(&bytes));
    const pxelinux = "\r\nPXELINUX 6.04 PXE 20200816 ";
    @memcpy(bytes[600..][0..pxelinux.len], pxelinux);
    const found = try inspect(&bytes);
    try testing.expectEqual(Kind.pxelinux, found.kind);
    try testing.expectEqualStrings("6.04", found.version.slice());
    @memset(bytes[600..], 0);
    const ipxe = "PXE->EB:\x00 PXENV+ at \x00 !PXE at ";
    @memcpy(bytes[300..][0..ipxe.len], ipxe);
    try testing.expectEqual(Kind.ipxe, (try inspect(&bytes)).kind);
}

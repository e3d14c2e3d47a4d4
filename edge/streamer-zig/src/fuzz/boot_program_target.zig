//! Fuzzes boot programs and their signatures, which are untrusted: PE headers, certificate tables,
//! DER.

const std = @import("std");
const wire = @import("wire");
const fuzz_case = @import("case.zig");
const Case = fuzz_case.Case;
const Violation = fuzz_case.Violation;
const expect = fuzz_case.expect;
const expectWithin = fuzz_case.expectWithin;

const buffer_size = 8192;

const texts = [_][]const u8{
    "UEFI SHIM\n$Version: 16.1 $\n",
    "GNU GRUB  version %s\x002.06\x00",
    "iPXE/%s\x00iPXE\x00\x001.21.1\x00",
    "shim,4,UEFI shim,shim,1,https://\n",
    "grub,5,FSF,grub,2.12,https://\n",
    "",
};

/// A UEFI program with one or two signatures, usually damaged in a few places.
fn makeProgram(case: *Case, buffer: *[buffer_size]u8) []u8 {
    const prng = &case.prng;
    var table: [2048]u8 = undefined;
    var name: [64]u8 = undefined;
    var size: usize = 0;
    for (0..@intCast(prng.below(3))) |_| {
        const signer = case.text(&name, 0);
        size += wire.authenticode.testTable(table[size..], signer, prng.chance(1, 2)).len;
    }
    const machines = [_]u16{ 0x8664, 0xaa64, 0x14c, case.number() };
    const text = prng.pick([]const u8, &texts);
    const whole = wire.pe_image.testImage(buffer, prng.pick(u16, &machines), text, table[0..size]);
    return if (prng.chance(3, 4)) case.mutate(buffer, whole.len) else whole;
}

pub fn program(case: *Case) Violation!bool {
    var buffer: [buffer_size]u8 = undefined;
    const bytes = makeProgram(case, &buffer);
    if (wire.pe_image.parse(bytes)) |image| {
        try expectWithin(image.certificates, bytes);
        if (image.section(".sbat")) |section| try expectWithin(section, bytes);
    } else |_| {}
    const found = wire.boot_program.inspect(bytes) catch return false;
    try expect(found.arch != .bios, "a PE file is no program for a BIOS");
    try expect(found.kind != .other, "what is not known is refused");
    for (found.signers.constSlice()) |*signer| try expect(signer.size > 0, "a signer has a name");
    return true;
}

pub fn signatures(case: *Case) Violation!bool {
    const prng = &case.prng;
    var buffer: [2048]u8 = undefined;
    var name: [64]u8 = undefined;
    const whole = wire.authenticode.testTable(&buffer, case.text(&name, 0), prng.chance(1, 2));
    const table = if (prng.chance(3, 4)) case.mutate(&buffer, whole.len) else whole;
    const signers = wire.authenticode.signersOf(table);
    var reader: wire.der.Reader = .init(table[@min(table.len, 8)..]);
    // Each element takes at least two bytes, so the loop ends.
    while (reader.next() catch null) |element| {
        try expectWithin(element.content, table);
        try expectWithin(element.whole, table);
        try expect(
            element.whole.len >= element.content.len + 2,
            "an element has a tag and a length",
        );
    }
    return signers.constSlice().len > 0;
}

pub fn plain(case: *Case) Violation!bool {
    const prng = &case.prng;
    var buffer: [1024]u8 = undefined;
    const bytes = case.garbage(&buffer);
    const begins = [_][]const u8{ "\xea", "\x7fELF\x01\x01", "MZ" };
    if (bytes.len > 300) {
        const begin = prng.pick([]const u8, &begins);
        @memcpy(bytes[0..begin.len], begin);
        const pxelinux = "\r\nPXELINUX 6.04 ";
        if (prng.chance(1, 2)) @memcpy(bytes[280..][0..pxelinux.len], pxelinux);
    }
    const found = wire.boot_program.inspect(bytes) catch return false;
    try expect(found.signers.constSlice().len == 0, "only PE files are signed");
    return true;
}

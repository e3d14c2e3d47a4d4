//! Fuzzes the parsers of a TPM's responses. A TPM is trusted with a key, and with nothing else.

const std = @import("std");
const base = @import("base");
const tpm = @import("wire").tpm;
const fuzz_case = @import("case.zig");
const Case = fuzz_case.Case;
const Violation = fuzz_case.Violation;
const expect = fuzz_case.expect;
const expectWithin = fuzz_case.expectWithin;

const size_max = 512;

pub fn parser(case: *Case) Violation!bool {
    var buffer: [size_max]u8 = undefined;
    const bytes = makeResponse(case, &buffer);
    if (tpm.response.Header.parse(bytes)) |header| {
        try expect(header.code.sentence().len > 0, "each code has a sentence");
    } else |_| {}
    return switch (case.prng.below(4)) {
        0 => if (tpm.response.parseDone(bytes)) |_| true else |_| false,
        1 => properties(bytes),
        2 => primary(bytes),
        3 => signature(bytes),
        else => unreachable,
    };
}

fn properties(bytes: []const u8) Violation!bool {
    const found = tpm.response.parseProperties(bytes) catch return false;
    try expectWithin(found.pairs, bytes);
    _ = found.get(tpm.property_family);
    return true;
}

fn primary(bytes: []const u8) Violation!bool {
    const found = tpm.response.parsePrimary(bytes) catch return false;
    try expect(found.public_key[0] == 4, "a public key is an uncompressed point");
    return true;
}

fn signature(bytes: []const u8) Violation!bool {
    const found = tpm.response.parseSignature(bytes) catch return false;
    try expect(found.len == tpm.signature_size, "a signature has r and s");
    return true;
}

/// A response of one of the four kinds, often damaged.
fn makeResponse(case: *Case, buffer: *[size_max]u8) []u8 {
    if (case.prng.chance(1, 16)) return case.garbage(buffer);
    var writer: base.ByteWriter = .init(buffer);
    const kind = case.prng.below(4);
    const tag: u16 = if (kind < 2) 0x8001 else 0x8002;
    write(&writer, u16, tag);
    write(&writer, u32, 0);
    write(&writer, u32, if (case.prng.chance(1, 8)) case.prng.nextU32() & 0xfff else 0);
    switch (kind) {
        0 => {},
        1 => writeProperties(case, &writer),
        2 => writePrimary(case, &writer),
        3 => writeSignature(case, &writer),
        else => unreachable,
    }
    const size = writer.position;
    std.mem.writeInt(u32, buffer[2..6], @intCast(size), .big);
    return if (case.prng.chance(1, 2)) buffer[0..size] else case.mutate(buffer, size);
}

fn writeProperties(case: *Case, writer: *base.ByteWriter) void {
    const count = case.prng.below(8);
    write(writer, u8, 0);
    write(writer, u32, tpm.cap_tpm_properties);
    write(writer, u32, @intCast(count));
    for (0..@intCast(count)) |_| {
        write(writer, u32, tpm.property_family + case.prng.nextU32() % 8);
        write(writer, u32, case.prng.nextU32());
    }
}

fn writePrimary(case: *Case, writer: *base.ByteWriter) void {
    write(writer, u32, 0x8000_0000);
    const parameters = writer.position;
    write(writer, u32, 0);
    const public = writer.position;
    write(writer, u16, 0);
    for ([_]u16{ tpm.alg_ecc, tpm.alg_sha256 }) |value| write(writer, u16, value);
    write(writer, u32, (tpm.Attributes{}).toInt());
    for ([_]u16{ 0, tpm.alg_null, tpm.alg_ecdsa }) |value| write(writer, u16, value);
    for ([_]u16{ tpm.alg_sha256, tpm.curve_p256, tpm.alg_null }) |value|
        write(writer, u16, value);
    for (0..2) |_| writeNumber(case, writer);
    const public_size: u16 = @intCast(writer.position - public - 2);
    std.mem.writeInt(u16, writer.buffer[public..][0..2], public_size, .big);
    for (0..2) |_| write(writer, u16, 0);
    write(writer, u16, 0x8021);
    write(writer, u32, 0x4000_0001);
    for (0..2) |_| write(writer, u16, 0);
    endParameters(writer, parameters);
}

fn writeSignature(case: *Case, writer: *base.ByteWriter) void {
    const parameters = writer.position;
    write(writer, u32, 0);
    for ([_]u16{ tpm.alg_ecdsa, tpm.alg_sha256 }) |value| write(writer, u16, value);
    for (0..2) |_| writeNumber(case, writer);
    endParameters(writer, parameters);
}

fn writeNumber(case: *Case, writer: *base.ByteWriter) void {
    var number: [32]u8 = undefined;
    case.prng.fill(&number);
    const size = case.prng.between(30, 32);
    write(writer, u16, @intCast(size));
    writer.bytes(number[0..@intCast(size)]) catch unreachable;
}

fn endParameters(writer: *base.ByteWriter, at: usize) void {
    const size: u32 = @intCast(writer.position - at - 4);
    std.mem.writeInt(u32, writer.buffer[at..][0..4], size, .big);
    write(writer, u16, 0);
    write(writer, u8, 0);
    write(writer, u16, 0);
}

fn write(writer: *base.ByteWriter, comptime T: type, value: T) void {
    writer.int(T, value) catch unreachable;
}

//! Tests of `wire.tpm`: commands against bytes that were written by hand from the specification's
//! tables and that swtpm 0.7.1 accepted, responses as swtpm gave them (2026-11).

const std = @import("std");
const base = @import("base");
const tpm = @import("tpm.zig");
const testing = std.testing;

const auth = "00000009" ++ "40000009" ++ "0000" ++ "00" ++ "0000";
const template =
    "0023" ++ "000b" ++ "00040472" ++ "0000" ++ "0010" ++ "0018" ++ "000b" ++ "0003" ++ "0010";
const unique =
    "0020" ++ "626f6f746661726d20646576696365206964656e746974792076310000000000" ++
    "0020" ++ "0000000000000000000000000000000000000000000000000000000000000000";
const x = "a128b95a7fb54960579e69b6b62d2960b7f232f740294de82ba50ab3313b99c7";
const y = "63cb071f1eed02659a2d3c105dc4c797bc370c15818bc137879c28d34c7022da";
const created = "8002" ++ "00000138" ++ "00000000" ++ "80000000" ++ "00000121" ++
    "0058" ++ template ++ "0020" ++ x ++ "0020" ++ y ++
    "0037" ++ "00000000" ++ "0020" ++
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" ++
    "01" ++ "0010" ++ "00044000000100044000000100000020" ++
    "5da041bac0ee3135aebb0cadfba497c6a1877fae832dd3d1f8f7a871b825e854" ++
    "8021" ++ "40000001" ++ "0040" ++
    "aebfdf650b42bc80e66360fe45fc044eb2ba6ba445f3a3f385501e4694661c31" ++
    "12192f0eda5247a01a596b4dc4cd82ff6ba89d683148272828529ba74ab6b005" ++
    "0022" ++ "000b" ++ "82022e806bc7db2aee751b3dbac822525f313bde7ff85e698b778a50bb31ef6a" ++
    "0000" ++ "01" ++ "0000";
const r = "a123120568755561755aded5488d33c3fcf47e33b00520978ee5e094ab72e745";
const s = "a0ebf0974fba3ff405e425632ee2648db976a8ec7ad406d11af5053eb6b92818";
const signed = "8002" ++ "0000005b" ++ "00000000" ++ "00000048" ++
    "0018" ++ "000b" ++ "0020" ++ r ++ "0020" ++ s ++ "0000" ++ "01" ++ "0000";
const properties = "8001" ++ "00000043" ++ "00000000" ++ "01" ++ "00000006" ++ "00000006" ++
    "00000100" ++ "322e3000" ++ "00000101" ++ "00000000" ++ "00000102" ++ "000000a4" ++
    "00000103" ++ "0000004b" ++ "00000104" ++ "000007e5" ++ "00000105" ++ "49424d00";

fn hex(comptime text: []const u8) [text.len / 2]u8 {
    @setEvalBranchQuota(10_000);
    var bytes: [text.len / 2]u8 = undefined;
    _ = std.fmt.hexToBytes(&bytes, text) catch unreachable;
    return bytes;
}

const created_bytes = hex(created);
const signed_bytes = hex(signed);
const properties_bytes = hex(properties);

fn expectCommand(comptime expected: []const u8, command: []const u8) !void {
    try testing.expectEqualSlices(u8, &hex(expected), command);
}

test "commands have the bytes of the specification's tables" {
    var buffer: [tpm.command.size_max]u8 = undefined;
    try expectCommand(
        "8001" ++ "00000016" ++ "0000017a" ++ "00000006" ++ "00000100" ++ "00000006",
        tpm.command.getProperties(&buffer, tpm.property_family, 6),
    );
    try expectCommand("80010000000c00000144" ++ "0000", tpm.command.startup(&buffer));
    try expectCommand("80010000000b00000143" ++ "00", tpm.command.selfTest(&buffer));
    try expectCommand(
        "8002" ++ "00000081" ++ "00000131" ++ "40000001" ++ auth ++ "000400000000" ++
            "0058" ++ template ++ unique ++ "0000" ++ "00000000",
        tpm.command.createPrimary(&buffer),
    );
    const digest = hex("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    try expectCommand(
        "8002" ++ "00000047" ++ "0000015d" ++ "80000000" ++ auth ++ "0020" ++
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" ++
            "0010" ++ "8024" ++ "40000007" ++ "0000",
        tpm.command.sign(&buffer, 0x8000_0000, &digest),
    );
    try expectCommand(
        "80010000000e00000165" ++ "80000001",
        tpm.command.flushContext(&buffer, 0x8000_0001),
    );
}

test "a signature of swtpm verifies with the key that it made" {
    const primary = try tpm.response.parsePrimary(&created_bytes);
    try testing.expectEqual(0x8000_0000, primary.handle);
    try testing.expectEqualSlices(u8, &hex("04" ++ x ++ y), &primary.public_key);
    const signature = try tpm.response.parseSignature(&signed_bytes);
    try testing.expectEqualSlices(u8, &hex(r ++ s), &signature);
    var digest: [32]u8 = undefined;
    base.Sha256.hash("abc", &digest, .{});
    try testing.expect(base.ecdsa_p256.isSigned(&digest, &signature, &primary.public_key));
}

test "a number without its leading zeros is the same number" {
    const short = comptime hex("8002" ++ "0000003d" ++ "00000000" ++ "0000002a" ++
        "0018" ++ "000b" ++ "0002" ++ "1234" ++ "0020" ++ s ++ "0000" ++ "01" ++ "0000");
    const signature = try tpm.response.parseSignature(&short);
    try testing.expect(std.mem.allEqual(u8, signature[0..30], 0));
    try testing.expectEqualSlices(u8, &.{ 0x12, 0x34 }, signature[30..32]);
}

test "properties are found by their number" {
    const found = try tpm.response.parseProperties(&properties_bytes);
    try testing.expectEqual(0x322e3000, found.get(tpm.property_family).?);
    try testing.expectEqual(0x49424d00, found.get(tpm.property_manufacturer).?);
    try testing.expectEqual(null, found.get(0x200));
}

test "a refusal carries its code, and what a TPM 1.2 answers is one" {
    const refused = hex("80010000000a00000100");
    try testing.expectError(error.Refused, tpm.response.parsePrimary(&refused));
    try testing.expectError(error.Refused, tpm.response.parseDone(&refused));
    try testing.expectEqual(0x100, (try tpm.response.Header.parse(&refused)).code.value);
    const old = hex("00c40000000a0000001e");
    try testing.expectError(error.Refused, tpm.response.parseProperties(&old));
    const code = (try tpm.response.Header.parse(&old)).code;
    try testing.expect(std.mem.find(u8, code.sentence(), "TPM 1.2") != null);
    try tpm.response.parseDone(&hex("80010000000a00000000"));
}

test "a response that is cut, longer than it says, or without an end is refused" {
    for (0..created_bytes.len) |size|
        try testing.expectError(
            error.Malformed,
            tpm.response.parsePrimary(created_bytes[0..size]),
        );
    for (0..signed_bytes.len) |size|
        try testing.expectError(
            error.Malformed,
            tpm.response.parseSignature(signed_bytes[0..size]),
        );
    for (0..properties_bytes.len) |size|
        try testing.expectError(
            error.Malformed,
            tpm.response.parseProperties(properties_bytes[0..size]),
        );
    try testing.expectError(
        error.Malformed,
        tpm.response.parseSignature(&(signed_bytes ++ [_]u8{0})),
    );
}

test "a key of another kind than the template's is refused" {
    // Positions in TPMT_PUBLIC: type, name hash, attributes, policy, cipher, scheme, hash, curve.
    for ([_]usize{ 21, 23, 27, 29, 31, 33, 35, 37, 39 }) |at| {
        var changed = created_bytes;
        changed[at] ^= 1;
        try testing.expectError(error.Malformed, tpm.response.parsePrimary(&changed));
    }
}

//! Names the signers of a UEFI program, from its signatures: Windows Authenticode Portable
//! Executable Signature Format, PKCS #7 (RFC 2315) and X.509 (RFC 5280). Names only: the device's
//! firmware verifies signatures, and this result must never be called more than "signed by".

const std = @import("std");
const base = @import("base");
const der = @import("der.zig");
const assert = std.debug.assert;

const signers_max = 4;
pub const Signers = base.BoundedArray(base.UntrustedText, signers_max);

/// A certificate chain is short; this one is a limit for damaged files.
const certificates_max = 32;
/// Each entry of the table begins at a multiple of this.
const alignment = 8;
const header_size = 8;
const type_pkcs_signed_data = 2;
/// 1.2.840.113549.1.7.2
const signed_data_oid = "\x2a\x86\x48\x86\xf7\x0d\x01\x07\x02";
/// 2.5.4.3, 2.5.4.10 and 2.5.4.11
const common_name_oid = "\x55\x04\x03";
const organization_oid = "\x55\x04\x0a";
const unit_oid = "\x55\x04\x0b";

/// Returns the subjects of the signers, in the order of the certificate table; unreadable ones are
/// skipped, and so are all after the first four.
pub fn signersOf(certificate_table: []const u8) Signers {
    var signers: Signers = .empty;
    var rest = certificate_table;
    while (rest.len >= header_size) {
        const size = std.mem.readInt(u32, rest[0..4], .little);
        if (size < header_size or size > rest.len) break;
        const kind = std.mem.readInt(u16, rest[6..8], .little);
        if (kind == type_pkcs_signed_data) addSigners(rest[header_size..size], &signers) catch {};
        const aligned = std.mem.alignForward(u64, size, alignment);
        if (aligned >= rest.len) break;
        rest = rest[@intCast(aligned)..];
    }
    return signers;
}

/// ContentInfo with SignedData (RFC 2315, sections 7 and 9.1).
fn addSigners(bytes: []const u8, signers: *Signers) der.Error!void {
    var outermost: der.Reader = .init(bytes);
    var content_info = (try outermost.expect(der.tag.sequence)).reader();
    const oid = try content_info.expect(der.tag.object_identifier);
    if (!std.mem.eql(u8, oid.content, signed_data_oid)) return error.Malformed;
    var explicit = (try content_info.expect(der.tag.context_0)).reader();
    var signed = (try explicit.expect(der.tag.sequence)).reader();
    _ = try signed.expect(der.tag.integer);
    _ = try signed.expect(der.tag.set);
    _ = try signed.expect(der.tag.sequence);
    var certificates: []const u8 = "";
    var infos: ?der.Element = null;
    // Certificates and revocation lists may be absent; the signers are the last, and a SET.
    while (try signed.next()) |element| switch (element.tag) {
        der.tag.context_0 => certificates = element.content,
        der.tag.set => infos = element,
        else => {},
    };
    var each = (infos orelse return error.Malformed).reader();
    while (try each.next()) |info| {
        const name = signerName(info, certificates) catch continue;
        signers.append(name) catch return;
    }
}

/// SignerInfo names a certificate by issuer and serial number (section 9.2). If that one is
/// missing, its issuer is the next best.
fn signerName(info: der.Element, certificates: []const u8) der.Error!base.UntrustedText {
    if (info.tag != der.tag.sequence) return error.Malformed;
    var fields = info.reader();
    _ = try fields.expect(der.tag.integer);
    var issuer_and_serial = (try fields.expect(der.tag.sequence)).reader();
    const issuer = try issuer_and_serial.expect(der.tag.sequence);
    const serial = try issuer_and_serial.expect(der.tag.integer);
    var each: der.Reader = .init(certificates);
    for (0..certificates_max) |_| {
        const certificate = (each.next() catch break) orelse break;
        const subject = subjectOf(certificate, issuer.whole, serial.content) catch continue orelse
            continue;
        return nameOf(subject);
    }
    return nameOf(issuer);
}

/// Null for another certificate. TBSCertificate: version, serial, algorithm, issuer, validity,
/// subject (RFC 5280, section 4.1).
fn subjectOf(
    certificate: der.Element,
    issuer: []const u8,
    serial: []const u8,
) der.Error!?der.Element {
    var outer = certificate.reader();
    var fields = (try outer.expect(der.tag.sequence)).reader();
    var first = try fields.next() orelse return error.Truncated;
    if (first.tag == der.tag.context_0) first = try fields.expect(der.tag.integer);
    if (first.tag != der.tag.integer) return error.Malformed;
    _ = try fields.expect(der.tag.sequence);
    const found_issuer = try fields.expect(der.tag.sequence);
    _ = try fields.expect(der.tag.sequence);
    const subject = try fields.expect(der.tag.sequence);
    if (!std.mem.eql(u8, first.content, serial)) return null;
    if (!std.mem.eql(u8, found_issuer.whole, issuer)) return null;
    return subject;
}

/// Returns the common name, or else the unit or the organization.
fn nameOf(distinguished: der.Element) der.Error!base.UntrustedText {
    for ([_][]const u8{ common_name_oid, unit_oid, organization_oid }) |oid| {
        if (try attributeOf(distinguished, oid)) |value| return .init(value);
    }
    return error.Malformed;
}

/// Name ::= SEQUENCE OF SET OF SEQUENCE { type, value }; the last one is the most specific.
fn attributeOf(distinguished: der.Element, oid: []const u8) der.Error!?[]const u8 {
    var found: ?[]const u8 = null;
    var sets = distinguished.reader();
    while (try sets.next()) |set| {
        var attributes = set.reader();
        while (try attributes.next()) |attribute| {
            var pair = attribute.reader();
            const kind = try pair.expect(der.tag.object_identifier);
            const value = try pair.next() orelse return error.Truncated;
            if (!std.mem.eql(u8, kind.content, oid)) continue;
            switch (value.tag) {
                der.tag.utf8_string,
                der.tag.printable_string,
                der.tag.t61_string,
                der.tag.ia5_string,
                => if (value.content.len > 0) {
                    found = value.content;
                },
                else => {},
            }
        }
    }
    return found;
}

/// A certificate table of one signature by `name`, issued by "Test CA".
pub fn testTable(buffer: []u8, name: []const u8, with_certificate: bool) []u8 {
    var builder: TestDer = .{};
    const issuer = builder.name("Test CA");
    const subject = builder.name(name);
    const serial = builder.element(der.tag.integer, &.{"\x07"});
    const empty = builder.element(der.tag.sequence, &.{""});
    const to_be_signed = builder.element(der.tag.sequence, &.{
        builder.element(der.tag.context_0, &.{builder.element(der.tag.integer, &.{"\x02"})}),
        serial,
        empty,
        issuer,
        empty,
        subject,
    });
    const certificate = builder.element(der.tag.sequence, &.{to_be_signed});
    const signer = builder.element(der.tag.sequence, &.{
        builder.element(der.tag.integer, &.{"\x01"}),
        builder.element(der.tag.sequence, &.{ issuer, serial }),
    });
    const signed = builder.element(der.tag.sequence, &.{
        builder.element(der.tag.integer, &.{"\x01"}),
        builder.element(der.tag.set, &.{""}),
        empty,
        if (with_certificate) builder.element(der.tag.context_0, &.{certificate}) else "",
        builder.element(der.tag.set, &.{signer}),
    });
    const content_info = builder.element(der.tag.sequence, &.{
        builder.element(der.tag.object_identifier, &.{signed_data_oid}),
        builder.element(der.tag.context_0, &.{signed}),
    });
    const size = header_size + content_info.len;
    const padded: usize = @intCast(std.mem.alignForward(u64, size, alignment));
    @memset(buffer[0..padded], 0);
    std.mem.writeInt(u32, buffer[0..4], @intCast(size), .little);
    std.mem.writeInt(u16, buffer[4..6], 0x0200, .little);
    std.mem.writeInt(u16, buffer[6..8], type_pkcs_signed_data, .little);
    @memcpy(buffer[header_size..size], content_info);
    return buffer[0..padded];
}

const TestDer = struct {
    memory: [4096]u8 = undefined,
    used: usize = 0,

    fn name(builder: *TestDer, common: []const u8) []const u8 {
        const pair = builder.element(der.tag.sequence, &.{
            builder.element(der.tag.object_identifier, &.{common_name_oid}),
            builder.element(der.tag.utf8_string, &.{common}),
        });
        return builder.element(der.tag.sequence, &.{builder.element(der.tag.set, &.{pair})});
    }

    fn element(builder: *TestDer, element_tag: u8, parts: []const []const u8) []const u8 {
        var size: usize = 0;
        for (parts) |part| size += part.len;
        const begin = builder.used;
        const head = builder.memory[begin..][0..4];
        head[0] = element_tag;
        head[1] = 0x82;
        std.mem.writeInt(u16, head[2..4], @intCast(size), .big);
        builder.used += head.len;
        for (parts) |part| {
            @memcpy(builder.memory[builder.used..][0..part.len], part);
            builder.used += part.len;
        }
        return builder.memory[begin..builder.used];
    }
};

const testing = std.testing;

test "the signer's own name is read, or its issuer's if the certificate is missing" {
    var buffer: [1024]u8 = undefined;
    const one = testTable(&buffer, "Signer One", true);
    const signers = signersOf(one);
    try testing.expectEqual(1, signers.constSlice().len);
    try testing.expectEqualStrings("Signer One", signers.constSlice()[0].slice());
    const without = signersOf(testTable(&buffer, "Signer One", false));
    try testing.expectEqualStrings("Test CA", without.constSlice()[0].slice());
}

test "several signatures are listed in order, at most four of them" {
    var buffer: [8192]u8 = undefined;
    var size: usize = 0;
    for ([_][]const u8{ "A", "Bb", "Ccc", "Dddd", "Eeeee" }) |name|
        size += testTable(buffer[size..], name, true).len;
    const signers = signersOf(buffer[0..size]);
    try testing.expectEqual(signers_max, signers.constSlice().len);
    try testing.expectEqualStrings("Bb", signers.constSlice()[1].slice());
}

test "no truncated table is read beyond its end, or attributed to another signer" {
    var buffer: [1024]u8 = undefined;
    const whole = testTable(&buffer, "Signer One", true);
    const size = std.mem.readInt(u32, whole[0..4], .little);
    for (0..size) |cut| try testing.expectEqual(0, signersOf(whole[0..cut]).constSlice().len);
    for (8..size) |cut| {
        std.mem.writeInt(u32, whole[0..4], @intCast(cut), .little);
        try testing.expectEqual(0, signersOf(whole).constSlice().len);
    }
}

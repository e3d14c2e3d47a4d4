//! Reads the certificates of authorities that are trusted: those of `--ca-file` in PEM (RFC 7468),
//! or the system's. The standard library's parser runs past the end of a damaged certificate, so
//! the nesting of those in a file is checked first.

const std = @import("std");
const Bundle = std.crypto.Certificate.Bundle;

const file_size_max = 1 << 20;
const depth_max = 16;

/// `NoCertificate`: there is none that has not expired, or one is damaged.
pub const Error = error{ NotReadable, NoCertificate, Canceled, OutOfMemory };

/// Those of the file are trusted, and no others; null: the system's.
pub fn read(
    gpa: std.mem.Allocator,
    io: std.Io,
    ca_file: ?[]const u8,
    now: std.Io.Timestamp,
    trust: *Bundle,
) Error!void {
    if (ca_file) |path| return readFile(gpa, io, path, now, trust);
    trust.rescan(gpa, io, now) catch |err| return switch (err) {
        error.OutOfMemory => error.OutOfMemory,
        error.Canceled => error.Canceled,
        else => error.NotReadable,
    };
}

/// Checks the file of `--ca-file` before anything depends on it.
pub fn check(gpa: std.mem.Allocator, io: std.Io, path: []const u8) Error!void {
    var trust: Bundle = .empty;
    defer trust.deinit(gpa);
    return readFile(gpa, io, path, std.Io.Clock.real.now(io), &trust);
}

fn readFile(
    gpa: std.mem.Allocator,
    io: std.Io,
    path: []const u8,
    now: std.Io.Timestamp,
    trust: *Bundle,
) Error!void {
    const text = std.Io.Dir.cwd().readFileAlloc(
        io,
        path,
        gpa,
        .limited(file_size_max),
    ) catch |err| return switch (err) {
        error.OutOfMemory => error.OutOfMemory,
        error.Canceled => error.Canceled,
        else => error.NotReadable,
    };
    defer gpa.free(text);
    return add(gpa, text, now, trust);
}

fn add(
    gpa: std.mem.Allocator,
    text: []const u8,
    now: std.Io.Timestamp,
    trust: *Bundle,
) error{ NoCertificate, OutOfMemory }!void {
    const begin = "-----BEGIN CERTIFICATE-----";
    const decoder = std.base64.standard.decoderWithIgnore(" \t\r\n");
    var rest = text;
    while (std.mem.find(u8, rest, begin)) |at| {
        rest = rest[at + begin.len ..];
        const end = std.mem.find(u8, rest, "-----END CERTIFICATE-----") orelse
            return error.NoCertificate;
        const start: u32 = @intCast(trust.bytes.items.len);
        const upper_size = decoder.calcSizeUpperBound(end);
        const room = try trust.bytes.addManyAsSlice(gpa, upper_size);
        const size = decoder.decode(room, rest[0..end]) catch return error.NoCertificate;
        trust.bytes.items.len = start + size;
        if (!isCertificate(room[0..size])) return error.NoCertificate;
        trust.parseCert(gpa, start, now.toSeconds()) catch |err| return switch (err) {
            error.OutOfMemory => error.OutOfMemory,
            else => error.NoCertificate,
        };
        rest = rest[end..];
    }
    if (trust.map.count() == 0) return error.NoCertificate;
}

/// Certificate ::= SEQUENCE { tbsCertificate, signatureAlgorithm, signatureValue } (RFC 5280, 4.1).
fn isCertificate(bytes: []const u8) bool {
    const certificate = Element.take(bytes) orelse return false;
    if (certificate.tag != 0x30 or certificate.rest.len > 0) return false;
    var parts = certificate.content;
    for ([_]u8{ 0x30, 0x30, 0x03 }) |tag| {
        const part = Element.take(parts) orelse return false;
        if (part.tag != tag or !isNested(part, depth_max)) return false;
        parts = part.rest;
    }
    return parts.len == 0;
}

/// Elements fill the element that contains them, at every level.
fn isNested(element: Element, depth: u8) bool {
    const is_constructed = element.tag & 0x20 != 0;
    if (!is_constructed) return true;
    if (depth == 0) return false;
    var left = element.content;
    while (left.len > 0) {
        const inner = Element.take(left) orelse return false;
        if (!isNested(inner, depth - 1)) return false;
        left = inner.rest;
    }
    return true;
}

/// Of DER (X.690), with a length of at most four bytes.
const Element = struct {
    tag: u8,
    content: []const u8,
    rest: []const u8,

    fn take(bytes: []const u8) ?Element {
        if (bytes.len < 2) return null;
        var size: usize = bytes[1];
        var at: usize = 2;
        if (size >= 0x80) {
            const size_size = size & 0x7f;
            if (size_size == 0 or size_size > 4 or bytes.len - at < size_size) return null;
            size = 0;
            for (bytes[at..][0..size_size]) |byte| size = size << 8 | byte;
            at += size_size;
        }
        if (bytes.len - at < size) return null;
        return .{ .tag = bytes[0], .content = bytes[at..][0..size], .rest = bytes[at + size ..] };
    }
};

const testing = std.testing;

/// Ed25519, CN=t, self-signed, until 2126.
const sample =
    \\-----BEGIN CERTIFICATE-----
    \\MIIBLjCB4aADAgECAhQCb4nuFd4Iij0BM9nR7cI45LLGTzAFBgMrZXAwDDEKMAgG
    \\A1UEAwwBdDAgFw0yNjExMjYyMTQ2MzZaGA8yMTI2MTEwMjIxNDYzNlowDDEKMAgG
    \\A1UEAwwBdDAqMAUGAytlcAMhAPPd7o1AdTMeoJ82RqwLG0BHp1Xb6g9eJT3zlwon
    \\UXXxo1MwUTAdBgNVHQ4EFgQUIEVeCZmAY/F6BtwSZoASxxaR1wowHwYDVR0jBBgw
    \\FoAUIEVeCZmAY/F6BtwSZoASxxaR1wowDwYDVR0TAQH/BAUwAwEB/zAFBgMrZXAD
    \\QQDnIutHO4iQWSW9U1BbgPPIzb30hG6kn2VXRNrHlzvK+XEDUT6PPJvKR3rWvNcv
    \\XDYIStnrP6t40xpvDWkr0VQA
    \\-----END CERTIFICATE-----
;

fn count(text: []const u8) !usize {
    var trust: Bundle = .empty;
    defer trust.deinit(testing.allocator);
    const now: std.Io.Timestamp = .{ .nanoseconds = 1_800_000_000 * std.time.ns_per_s };
    try add(testing.allocator, text, now, &trust);
    return trust.map.count();
}

test "the certificates of a file are read, whatever stands between them" {
    try testing.expectEqual(1, try count(sample));
    try testing.expectEqual(1, try count("# twice\r\n" ++ sample ++ "\nmore\n" ++ sample));
}

test "a file without a certificate, and one with a damaged one, are refused" {
    const begin = "-----BEGIN CERTIFICATE-----\n";
    const end = "\n-----END CERTIFICATE-----\n";
    for ([_][]const u8{
        "",
        "text",
        begin,
        begin ++ end,
        begin ++ "AAAA" ++ end,
        begin ++ "?" ++ end,
    }) |text|
        try testing.expectError(error.NoCertificate, count(text));
    try testing.expectError(error.NoCertificate, count(sample ++ "\n" ++ begin ++ "MAA=" ++ end));
}

test "a certificate that ends anywhere, or with any length changed, never runs past its end" {
    const decoder = std.base64.standard.decoderWithIgnore("\n");
    const tail_size = "\n-----END CERTIFICATE-----".len;
    const body = sample["-----BEGIN CERTIFICATE-----\n".len .. sample.len - tail_size];
    var buffer: [1024]u8 = undefined;
    const size = try decoder.decode(&buffer, body);
    try testing.expect(isCertificate(buffer[0..size]));
    for (0..size) |cut| try testing.expect(!isCertificate(buffer[0..cut]));
    for (0..size) |at| for ([_]u8{ 1, 0x7f, 0x80 }) |change| {
        buffer[at] +%= change;
        defer buffer[at] -%= change;
        _ = isCertificate(buffer[0..size]);
    };
}

//! TPM 2.0 responses (TCG, Part 3): tag, size, response code, and, if that is success, handle and
//! parameters. A parser reads nothing beyond the sizes that the response names, and refuses one
//! whose parts do not add up to its size.

const std = @import("std");
const base = @import("base");
const tpm = @import("tpm.zig");
const ResponseCode = tpm.ResponseCode;

const header_size = 10;

pub const Error = error{
    /// Shorter, longer or other than the command's response.
    Malformed,
    /// `Header.code` says why.
    Refused,
};

/// What every response begins with.
pub const Header = struct {
    tag: tpm.Tag,
    /// Of the whole response.
    size: u32,
    code: ResponseCode,

    /// Also of a response of which more is to come.
    pub fn parse(bytes: []const u8) error{Malformed}!Header {
        var cursor: base.Cursor = .init(bytes);
        return read(&cursor) catch error.Malformed;
    }

    fn read(cursor: *base.Cursor) error{ Truncated, Malformed }!Header {
        const header: Header = .{
            .tag = @fromBackingInt(try cursor.int(u16)),
            .size = try cursor.int(u32),
            .code = .{ .value = try cursor.int(u32) },
        };
        if (header.size < header_size or header.size > tpm.response_size_max)
            return error.Malformed;
        return header;
    }
};

pub const Primary = struct {
    handle: u32,
    public_key: [tpm.public_key_size]u8,
};

/// The values of properties, in their order.
pub const Properties = struct {
    /// Pairs of property and value.
    pairs: []const u8,

    pub fn get(properties: *const Properties, wanted: u32) ?u32 {
        var cursor: base.Cursor = .init(properties.pairs);
        while (cursor.remaining() > 0) {
            const property = cursor.int(u32) catch return null;
            const value = cursor.int(u32) catch return null;
            if (property == wanted) return value;
        }
        return null;
    }
};

/// The response to a command without result.
pub fn parseDone(bytes: []const u8) Error!void {
    var cursor = try begin(bytes, .no_sessions);
    if (cursor.remaining() > 0) return error.Malformed;
}

pub fn parseProperties(bytes: []const u8) Error!Properties {
    var cursor = try begin(bytes, .no_sessions);
    return readProperties(&cursor) catch error.Malformed;
}

/// The key of `command.createPrimary`, and only one with all of its template.
pub fn parsePrimary(bytes: []const u8) Error!Primary {
    var cursor = try begin(bytes, .sessions);
    return readPrimary(&cursor) catch error.Malformed;
}

/// r and s, each with leading zeros.
pub fn parseSignature(bytes: []const u8) Error![tpm.signature_size]u8 {
    var cursor = try begin(bytes, .sessions);
    return readSignature(&cursor) catch error.Malformed;
}

/// Returns what follows the header of a successful response.
fn begin(bytes: []const u8, tag: tpm.Tag) Error!base.Cursor {
    var cursor: base.Cursor = .init(bytes);
    const header = Header.read(&cursor) catch return error.Malformed;
    if (header.size != bytes.len) return error.Malformed;
    if (!header.code.isSuccess())
        return if (cursor.remaining() == 0) error.Refused else error.Malformed;
    if (header.tag != tag) return error.Malformed;
    return cursor;
}

const ReadError = error{ Truncated, Malformed };

fn readProperties(cursor: *base.Cursor) ReadError!Properties {
    try cursor.skip(1); // moreData
    if (try cursor.int(u32) != tpm.cap_tpm_properties) return error.Malformed;
    const count = try cursor.int(u32);
    const pairs = cursor.rest();
    if (pairs.len != @as(u64, count) * 8) return error.Malformed;
    return .{ .pairs = pairs };
}

fn readPrimary(cursor: *base.Cursor) ReadError!Primary {
    const handle = try cursor.int(u32);
    var parameters = try readParameters(cursor);
    var public: base.Cursor = .init(try readSized(&parameters));
    const public_key = try readPublic(&public);
    try expectEnd(&public);
    _ = try readSized(&parameters); // creationData
    _ = try readSized(&parameters); // creationHash
    try parameters.skip(2 + 4); // creationTicket: tag and hierarchy
    _ = try readSized(&parameters);
    _ = try readSized(&parameters); // name
    try expectEnd(&parameters);
    return .{ .handle = handle, .public_key = public_key };
}

/// TPMT_PUBLIC.
fn readPublic(cursor: *base.Cursor) ReadError![tpm.public_key_size]u8 {
    try expectInt(cursor, u16, tpm.alg_ecc);
    try expectInt(cursor, u16, tpm.alg_sha256);
    try expectInt(cursor, u32, (tpm.Attributes{}).toInt());
    if ((try readSized(cursor)).len != 0) return error.Malformed; // policy
    try expectInt(cursor, u16, tpm.alg_null);
    try expectInt(cursor, u16, tpm.alg_ecdsa);
    try expectInt(cursor, u16, tpm.alg_sha256);
    try expectInt(cursor, u16, tpm.curve_p256);
    try expectInt(cursor, u16, tpm.alg_null);
    var key: [tpm.public_key_size]u8 = undefined;
    key[0] = 4;
    key[1..33].* = try readNumber(cursor);
    key[33..65].* = try readNumber(cursor);
    return key;
}

fn readSignature(cursor: *base.Cursor) ReadError![tpm.signature_size]u8 {
    var parameters = try readParameters(cursor);
    try expectInt(&parameters, u16, tpm.alg_ecdsa);
    try expectInt(&parameters, u16, tpm.alg_sha256);
    const r = try readNumber(&parameters);
    const s = try readNumber(&parameters);
    try expectEnd(&parameters);
    return r ++ s;
}

/// Returns the parameters of a response with sessions, after which only the password's empty
/// session is left.
fn readParameters(cursor: *base.Cursor) ReadError!base.Cursor {
    const parameters = try cursor.bytes(try cursor.int(u32));
    if ((try readSized(cursor)).len != 0) return error.Malformed; // nonce
    try cursor.skip(1); // attributes
    if ((try readSized(cursor)).len != 0) return error.Malformed; // hmac
    try expectEnd(cursor);
    return .init(parameters);
}

fn readSized(cursor: *base.Cursor) ReadError![]const u8 {
    return cursor.bytes(try cursor.int(u16));
}

/// Some TPMs leave out leading zeros.
fn readNumber(cursor: *base.Cursor) ReadError![32]u8 {
    const bytes = try readSized(cursor);
    if (bytes.len == 0 or bytes.len > 32) return error.Malformed;
    var number: [32]u8 = @splat(0);
    @memcpy(number[32 - bytes.len ..], bytes);
    return number;
}

fn expectInt(cursor: *base.Cursor, comptime T: type, expected: T) ReadError!void {
    if (try cursor.int(T) != expected) return error.Malformed;
}

fn expectEnd(cursor: *const base.Cursor) ReadError!void {
    if (cursor.remaining() > 0) return error.Malformed;
}

//! TFTP packets, parsed and emitted: RFC 1350 (protocol), 2347 (options), 2348 (blksize), 2349
//! (timeout, tsize), 7440 (windowsize). The same functions serve both sides. It must never
//! interpret a file name.

const std = @import("std");
const assert = std.debug.assert;
const base = @import("base");

pub const server_port = 69;
/// RFC 2347: "The maximum size of a request packet is 512 octets."
pub const request_size_max = 512;
pub const data_header_size = 4;
const ack_size = 4;
const error_text_size_max = 128;
/// RFC 1350: the size of DATA's payload unless another was agreed.
pub const blksize_default = 512;
pub const blksize_min = 8;
pub const blksize_max = 65464;

const Opcode = enum(u16) { rrq = 1, wrq = 2, data = 3, ack = 4, err = 5, oack = 6 };

pub const Mode = enum { octet, netascii, mail };

pub const ErrorCode = enum(u16) {
    not_defined = 0,
    file_not_found = 1,
    access_violation = 2,
    disk_full = 3,
    illegal_operation = 4,
    unknown_transfer = 5,
    file_exists = 6,
    no_such_user = 7,
    /// RFC 2347: the client ends a transfer over its options. OVMF sends it when it only wanted the
    /// size.
    option_refused = 8,
    _,
};

/// Options that a request contains or an OACK accepts; null is absent.
pub const Options = struct {
    /// 8 to 65464.
    blksize: ?u16 = null,
    tsize: ?u64 = null,
    /// 1 to 255.
    timeout_s: ?u8 = null,
    /// 1 to 65535.
    windowsize: ?u16 = null,

    pub fn isEmpty(options: *const Options) bool {
        return options.blksize == null and options.tsize == null and
            options.timeout_s == null and options.windowsize == null;
    }
};

/// RRQ or WRQ. The name is the peer's text and never a path of ours.
pub const Request = struct { file_name: []const u8, mode: Mode = .octet, options: Options = .{} };
pub const Data = struct { block: u16, bytes: []const u8 };
pub const Error = struct { code: ErrorCode, text: []const u8 };

/// Slices point into the parsed bytes.
pub const Packet = union(enum) {
    rrq: Request,
    wrq: Request,
    data: Data,
    ack: u16,
    err: Error,
    oack: Options,
};

pub const ParseError = error{ Truncated, TooLong, BadPacket, BadOption };

pub fn parse(payload: []const u8) ParseError!Packet {
    var cursor: base.Cursor = .init(payload);
    const opcode = std.enums.fromInt(Opcode, try cursor.int(u16)) orelse return error.BadPacket;
    switch (opcode) {
        .rrq => return .{ .rrq = try parseRequest(&cursor) },
        .wrq => return .{ .wrq = try parseRequest(&cursor) },
        .data => {
            const block = try cursor.int(u16);
            if (cursor.remaining() > blksize_max) return error.TooLong;
            return .{ .data = .{ .block = block, .bytes = cursor.rest() } };
        },
        .ack => {
            const block = try cursor.int(u16);
            if (cursor.remaining() > 0) return error.BadPacket;
            return .{ .ack = block };
        },
        .err => {
            const code: ErrorCode = @fromBackingInt(try cursor.int(u16));
            const text = cursor.rest();
            if (text.len > request_size_max) return error.TooLong;
            // Some clients send ERROR without the zero byte at the end of the text.
            const size = std.mem.findScalar(u8, text, 0) orelse text.len;
            return .{ .err = .{ .code = code, .text = text[0..size] } };
        },
        .oack => {
            if (payload.len > request_size_max) return error.TooLong;
            return .{ .oack = try parseOptions(&cursor, .agreed) };
        },
    }
}

fn parseRequest(cursor: *base.Cursor) ParseError!Request {
    if (cursor.buffer.len > request_size_max) return error.TooLong;
    const file_name = try cursor.untilZero();
    if (file_name.len == 0) return error.BadPacket;
    const mode_text = try cursor.untilZero();
    const mode: Mode = for (std.enums.values(Mode)) |mode| {
        if (std.ascii.eqlIgnoreCase(mode_text, @tagName(mode))) break mode;
    } else return error.BadPacket;
    return .{ .file_name = file_name, .mode = mode, .options = try parseOptions(cursor, .asked) };
}

/// In a request an unsupported value means that the option is absent (RFC 2347: the server leaves
/// it out of its OACK); in an OACK it would leave the two sides with different sizes and is an
/// error.
const Strictness = enum { asked, agreed };

fn parseOptions(cursor: *base.Cursor, strictness: Strictness) ParseError!Options {
    var options: Options = .{};
    var seen: std.enums.EnumSet(OptionName) = .empty;
    while (cursor.remaining() > 0) {
        const name_text = try cursor.untilZero();
        if (name_text.len == 0) {
            // Some ROMs send their whole request buffer: zeros up to the end.
            if (!std.mem.allEqual(u8, cursor.rest(), 0)) return error.BadOption;
            break;
        }
        const value_text = try cursor.untilZero();
        const name: OptionName = for (std.enums.values(OptionName)) |name| {
            if (std.ascii.eqlIgnoreCase(name_text, @tagName(name))) break name;
        } else continue;
        // RFC 2347: "An option may only be specified once."
        if (seen.contains(name)) return error.BadOption;
        seen.insert(name);
        setOption(&options, name, value_text) catch |refusal| switch (refusal) {
            error.BadOption => if (strictness == .agreed) return error.BadOption,
        };
    }
    return options;
}

const OptionName = enum { blksize, tsize, timeout, windowsize };

fn setOption(options: *Options, name: OptionName, text: []const u8) error{BadOption}!void {
    switch (name) {
        .blksize => options.blksize = try decimal(u16, text, blksize_min, blksize_max),
        .tsize => options.tsize = try decimal(u64, text, 0, std.math.maxInt(u64)),
        .timeout => options.timeout_s = try decimal(u8, text, 1, 255),
        .windowsize => options.windowsize = try decimal(u16, text, 1, 65535),
    }
}

fn decimal(comptime T: type, text: []const u8, first: T, last: T) error{BadOption}!T {
    if (text.len == 0) return error.BadOption;
    for (text) |digit| if (!std.ascii.isDigit(digit)) return error.BadOption;
    const value = std.fmt.parseInt(T, text, 10) catch return error.BadOption;
    if (value < first) return error.BadOption;
    if (value > last) return error.BadOption;
    return value;
}

/// Writes any packet and returns it. File names and error texts must not contain a zero byte.
pub fn emit(packet: *const Packet, buffer: []u8) base.ByteWriter.Error![]u8 {
    var writer: base.ByteWriter = .init(buffer);
    switch (packet.*) {
        .rrq => |request| try emitRequest(&writer, .rrq, &request),
        .wrq => |request| try emitRequest(&writer, .wrq, &request),
        .data => |data| {
            try writer.bytes(&dataHeader(data.block));
            try writer.bytes(data.bytes);
        },
        .ack => |block| {
            try writer.int(u16, @backingInt(Opcode.ack));
            try writer.int(u16, block);
        },
        .err => |failure| {
            try writer.int(u16, @backingInt(Opcode.err));
            try writer.int(u16, @backingInt(failure.code));
            try writer.zeroTerminated(failure.text);
        },
        .oack => |options| {
            try writer.int(u16, @backingInt(Opcode.oack));
            try emitOptions(&writer, &options);
        },
    }
    return writer.written();
}

/// The four bytes before DATA's payload, for callers that read the payload directly behind them.
pub fn dataHeader(block: u16) [data_header_size]u8 {
    var header: [data_header_size]u8 = undefined;
    std.mem.writeInt(u16, header[0..2], @backingInt(Opcode.data), .big);
    std.mem.writeInt(u16, header[2..4], block, .big);
    return header;
}

fn emitRequest(
    writer: *base.ByteWriter,
    opcode: Opcode,
    request: *const Request,
) base.ByteWriter.Error!void {
    assert(request.file_name.len > 0);
    try writer.int(u16, @backingInt(opcode));
    try writer.zeroTerminated(request.file_name);
    try writer.zeroTerminated(@tagName(request.mode));
    try emitOptions(writer, &request.options);
    if (writer.position > request_size_max) return error.NoSpace;
}

/// In the order in which most firmware writes them.
fn emitOptions(writer: *base.ByteWriter, options: *const Options) base.ByteWriter.Error!void {
    if (options.tsize) |value| try writer.print("tsize\x00{d}\x00", .{value});
    if (options.blksize) |value| try writer.print("blksize\x00{d}\x00", .{value});
    if (options.timeout_s) |value| try writer.print("timeout\x00{d}\x00", .{value});
    if (options.windowsize) |value| try writer.print("windowsize\x00{d}\x00", .{value});
}

/// Returns the counter of a refused packet.
pub fn ignoreReason(refusal: ParseError) base.IgnoreReason {
    return switch (refusal) {
        error.Truncated => .tftp_truncated,
        error.TooLong => .tftp_too_long,
        error.BadPacket => .tftp_bad_packet,
        error.BadOption => .tftp_bad_option,
    };
}

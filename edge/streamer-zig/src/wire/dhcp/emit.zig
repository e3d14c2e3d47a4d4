//! Writes the options of a DHCP packet: in one piece, or in size-limited answers with option
//! overload (RFC 2131 section 4.1), without the options that do not fit. Values of more than 255
//! bytes are split (RFC 3396 section 6). The relay agent's option is last (RFC 3046 section 2.1).

const std = @import("std");
const assert = std.debug.assert;
const base = @import("base");
const options_format = @import("options.zig");
const ByteWriter = base.ByteWriter;
const Code = options_format.Code;
const Ip4 = base.Ip4;
const Options = options_format.Options;

pub const Error = ByteWriter.Error;

const value_size_max = 255;
const end: u8 = @backingInt(Code.end);
/// Code and size.
const head_size = 2;
/// Code, size and value of option 52.
const overload_size = head_size + 1;

/// Writes all options and END consecutively.
pub fn emit(options: *const Options, writer: *ByteWriter) Error!void {
    try emitTo(options, writer, one);
    try writer.int(u8, end);
}

/// The fields of a packet that may hold options; null where the field is in use.
pub const Places = struct { options: []u8, file: ?[]u8, sname: ?[]u8 };

/// Writes the options that fit. The first options of `emitTo` are the indispensable ones. Returns
/// the size of the option field, END included, and the number of options left out.
pub fn emitWithin(options: *const Options, places: Places) struct { size: usize, left_out: u32 } {
    var whole: ByteWriter = .init(places.options);
    if (emit(options, &whole)) return .{ .size = whole.position, .left_out = 0 } else |_| {}
    var overloaded: Overloaded = .init(options, places);
    emitTo(options, &overloaded, Overloaded.place) catch unreachable;
    return .{ .size = overloaded.finish(options), .left_out = overloaded.left_out };
}

/// Options spread over three fields. The first one reserves space for the relay agent's option and
/// option 52.
const Overloaded = struct {
    /// Options, `file`, `sname`.
    fields: [3]ByteWriter,
    left_out: u32 = 0,

    fn init(options: *const Options, places: Places) Overloaded {
        const relay_size = if (options.relay_agent) |value| sizeOf(value.len) else 0;
        const kept = overload_size + relay_size + 1;
        return .{ .fields = .{
            .init(places.options[0..places.options.len -| kept]),
            .init(roomOf(places.file)),
            .init(roomOf(places.sname)),
        } };
    }

    /// One byte is reserved for END.
    fn roomOf(field: ?[]u8) []u8 {
        const bytes = field orelse return &.{};
        @memset(bytes, 0);
        return bytes[0 .. bytes.len - 1];
    }

    fn place(overloaded: *Overloaded, code: Code, value: []const u8) Error!void {
        if (code == .relay_agent) return;
        for (&overloaded.fields) |*field| {
            if (field.remaining() < sizeOf(value.len)) continue;
            return one(field, code, value) catch unreachable;
        }
        overloaded.left_out += 1;
    }

    /// Appends option 52 and the relay agent's option, and an END to each field.
    fn finish(overloaded: *Overloaded, options: *const Options) usize {
        var used: u8 = 0;
        for (overloaded.fields[1..], [_]u8{ 1, 2 }) |*field, bit| {
            if (field.position == 0) continue;
            used |= bit;
            field.buffer.ptr[field.position] = end;
        }
        const main = &overloaded.fields[0];
        // The space that `init` reserved.
        main.buffer.len += overload_size + 1 +
            if (options.relay_agent) |value| sizeOf(value.len) else 0;
        if (used != 0) one(main, .overload, &.{used}) catch unreachable;
        if (options.relay_agent) |value| one(main, .relay_agent, value) catch unreachable;
        main.int(u8, end) catch unreachable;
        return main.position;
    }
};

fn sizeOf(value_size: usize) usize {
    const parts = @max(1, std.math.divCeil(usize, value_size, value_size_max) catch unreachable);
    return value_size + parts * head_size;
}

/// Passes on each option, the most important first. The message type is the very first: some ROMs
/// look for it there only.
fn emitTo(
    options: *const Options,
    to: anytype,
    comptime put: fn (@TypeOf(to), Code, []const u8) Error!void,
) Error!void {
    if (options.message_type) |value| try put(to, .message_type, &.{@backingInt(value)});
    try putIp(to, put, .server_identifier, options.server_identifier);
    try putIp(to, put, .requested_ip, options.requested_ip);
    try putInt(u32, to, put, .lease_time, options.lease_time_s);
    try putInt(u32, to, put, .renewal_time, options.renewal_time_s);
    try putInt(u32, to, put, .rebinding_time, options.rebinding_time_s);
    try putIp(to, put, .subnet_mask, options.subnet_mask);
    try putBytes(to, put, .vendor_class, options.vendor_class);
    try putBytes(to, put, .vendor_specific, options.vendor_specific);
    if (options.client_machine_id) |id|
        try put(to, .client_machine_id, &([_]u8{id.type} ++ id.guid));
    try putIps(to, put, .routers, options.routers);
    try putIps(to, put, .dns_servers, options.dns_servers);
    try putInt(u16, to, put, .max_message_size, options.max_message_size);
    if (options.client_arch) |value| try putInt(u16, to, put, .client_arch, @backingInt(value));
    if (options.client_ndi) |value| try put(to, .client_ndi, &value);
    try putBytes(to, put, .user_class, options.user_class);
    try putBytes(to, put, .parameter_request_list, options.parameter_request_list);
    try putBytes(to, put, .ipxe, options.ipxe);
    try putBytes(to, put, .boot_file_name, options.boot_file_name);
    try putBytes(to, put, .tftp_server_name, options.tftp_server_name);
    try putBytes(to, put, .client_identifier, options.client_identifier);
    try putIp(to, put, .subnet_selection, options.subnet_selection);
    try putInt(u16, to, put, .interface_mtu, options.interface_mtu);
    try putBytes(to, put, .host_name, options.host_name);
    try putBytes(to, put, .domain_name, options.domain_name);
    try putIps(to, put, .ntp_servers, options.ntp_servers);
    try putBytes(to, put, .relay_agent, options.relay_agent);
}

fn putIp(to: anytype, comptime put: anytype, code: Code, value: ?Ip4) Error!void {
    if (value) |ip| try put(to, code, &ip.bytes);
}

fn putIps(to: anytype, comptime put: anytype, code: Code, ips: []const Ip4) Error!void {
    if (ips.len > 0) try put(to, code, @ptrCast(ips));
}

fn putInt(comptime T: type, to: anytype, comptime put: anytype, code: Code, value: ?T) Error!void {
    const number = value orelse return;
    var raw: [@sizeOf(T)]u8 = undefined;
    std.mem.writeInt(T, &raw, number, .big);
    try put(to, code, &raw);
}

fn putBytes(to: anytype, comptime put: anytype, code: Code, value: ?[]const u8) Error!void {
    if (value) |raw| try put(to, code, raw);
}

/// One option; more than 255 bytes are split into several occurrences (RFC 3396 section 6).
fn one(writer: *ByteWriter, code: Code, value: []const u8) Error!void {
    var left = value;
    while (true) {
        const size = @min(left.len, value_size_max);
        try writer.int(u8, @backingInt(code));
        try writer.int(u8, @intCast(size));
        try writer.bytes(left[0..size]);
        left = left[size..];
        if (left.len == 0) return;
    }
}

//! The option part of a DHCP packet: RFC 2132 (codes), RFC 3396 (long options, split over several
//! occurrences), RFC 2131 section 4.1 (option overload), RFC 4578 (PXE), RFC 3046 and 3527 (relay
//! agents), RFC 3011 (subnet selection). Only the layout is known here, never the policy;
//! `emit.zig` writes what this file reads.

const std = @import("std");
const assert = std.debug.assert;
const base = @import("base");
const Ip4 = base.Ip4;
const Uuid = base.Uuid;

/// Options that Bootfarm reads or writes; every other code is skipped.
pub const Code = enum(u8) {
    pad = 0,
    subnet_mask = 1,
    routers = 3,
    dns_servers = 6,
    host_name = 12,
    domain_name = 15,
    interface_mtu = 26,
    ntp_servers = 42,
    vendor_specific = 43,
    requested_ip = 50,
    lease_time = 51,
    overload = 52,
    message_type = 53,
    server_identifier = 54,
    parameter_request_list = 55,
    max_message_size = 57,
    renewal_time = 58,
    rebinding_time = 59,
    vendor_class = 60,
    client_identifier = 61,
    tftp_server_name = 66,
    boot_file_name = 67,
    user_class = 77,
    relay_agent = 82,
    client_arch = 93,
    client_ndi = 94,
    client_machine_id = 97,
    subnet_selection = 118,
    ipxe = 175,
    end = 255,
    _,
};

pub const MessageType = enum(u8) {
    discover = 1,
    offer = 2,
    request = 3,
    decline = 4,
    ack = 5,
    nak = 6,
    release = 7,
    inform = 8,
    _,
};

/// Client architecture (IANA "Processor Architecture Types"); the ones that have a boot program are
/// named.
pub const ClientArch = enum(u16) {
    bios = 0,
    uefi_x86 = 6,
    uefi_x64 = 7,
    /// "EBC" in the registry; sent by x64 firmware since RFC 4578 had swapped 7 and 9.
    uefi_x64_by_rfc4578 = 9,
    uefi_arm64 = 11,
    uefi_x86_http = 15,
    uefi_x64_http = 16,
    uefi_arm64_http = 19,
    _,
};

/// Option 97: a type byte and 16 bytes.
pub const MachineId = struct {
    type: u8 = 0,
    guid: [16]u8,

    /// The machine's SMBIOS UUID. The GUID's first three fields are little-endian (RFC 4578 section
    /// 2.3). Null for other types, and for the all-zero and all-one fillers of boards that have
    /// none.
    pub fn uuid(id: MachineId) ?Uuid {
        if (id.type != 0) return null;
        if (std.mem.allEqual(u8, &id.guid, 0)) return null;
        if (std.mem.allEqual(u8, &id.guid, 0xff)) return null;
        return .fromMixedEndian(id.guid);
    }
};

/// The options of a packet. Slices point into the packet or into the scratch buffer of `parse`.
pub const Options = struct {
    message_type: ?MessageType = null,
    server_identifier: ?Ip4 = null,
    requested_ip: ?Ip4 = null,
    lease_time_s: ?u32 = null,
    /// When to renew (T1) and to rebind (T2), in seconds since the lease began.
    renewal_time_s: ?u32 = null,
    rebinding_time_s: ?u32 = null,
    subnet_mask: ?Ip4 = null,
    /// Empty when absent.
    routers: []const Ip4 = &.{},
    /// Empty when absent.
    dns_servers: []const Ip4 = &.{},
    host_name: ?[]const u8 = null,
    domain_name: ?[]const u8 = null,
    /// Bytes (option 26).
    interface_mtu: ?u16 = null,
    /// Empty when absent.
    ntp_servers: []const Ip4 = &.{},
    vendor_specific: ?[]const u8 = null,
    parameter_request_list: ?[]const u8 = null,
    max_message_size: ?u16 = null,
    vendor_class: ?[]const u8 = null,
    client_identifier: ?[]const u8 = null,
    tftp_server_name: ?[]const u8 = null,
    boot_file_name: ?[]const u8 = null,
    /// As sent; `userClassText` reads it.
    user_class: ?[]const u8 = null,
    /// The first of the list.
    client_arch: ?ClientArch = null,
    /// Network interface type, major and minor revision (option 94).
    client_ndi: ?[3]u8 = null,
    client_machine_id: ?MachineId = null,
    /// iPXE's encapsulated options, as sent.
    ipxe: ?[]const u8 = null,
    /// The requested subnet of the address (RFC 3011).
    subnet_selection: ?Ip4 = null,
    /// The relay agent's addition, as sent (RFC 3046).
    relay_agent: ?[]const u8 = null,

    /// The first user class: RFC 3004's length-prefixed form where the whole option has it, else
    /// the bare text that iPXE sends.
    pub fn userClassText(options: *const Options) ?[]const u8 {
        const raw = options.user_class orelse return null;
        var cursor: base.Cursor = .init(raw);
        var first: ?[]const u8 = null;
        while (cursor.remaining() > 0) {
            const size = cursor.int(u8) catch return raw;
            const text = cursor.bytes(size) catch return raw;
            if (first == null) first = text;
        }
        return first orelse raw;
    }

    /// Tells whether the client is iPXE already: option 175, or its user class.
    pub fn isIpxe(options: *const Options) bool {
        if (options.ipxe != null) return true;
        const user_class = options.userClassText() orelse return false;
        return std.mem.eql(u8, user_class, "iPXE");
    }

    /// Returns the client's subnet if a relay agent names it beside its own address (RFC 3527:
    /// sub-option 5 of option 82). Null if it is absent or invalid.
    pub fn linkSelection(options: *const Options) ?Ip4 {
        const link_selection = 5;
        var cursor: base.Cursor = .init(options.relay_agent orelse return null);
        while (cursor.remaining() > 0) {
            const code = cursor.int(u8) catch return null;
            const value = cursor.bytes(cursor.int(u8) catch return null) catch return null;
            if (code != link_selection) continue;
            return if (value.len == 4) .{ .bytes = value[0..4].* } else null;
        }
        return null;
    }

    /// Tells whether the client listed this option (55), or sent no list.
    pub fn wants(options: *const Options, code: Code) bool {
        const list = options.parameter_request_list orelse return true;
        return std.mem.findScalar(u8, list, @backingInt(code)) != null;
    }
};

pub const ParseError = error{ Truncated, BadOption };

/// Holds the joined parts of long options: together they are never longer than the packet.
pub const scratch_size = 2048;
pub const Scratch = [scratch_size]u8;

/// The fields that hold options, in the order in which RFC 3396 section 5 joins them.
const Regions = struct {
    slices: [3][]const u8,

    fn iterate(regions: *const Regions) Iterator {
        return .{ .regions = regions };
    }
};

const Option = struct { code: u8, value: []const u8 };

const Iterator = struct {
    regions: *const Regions,
    region_index: u32 = 0,
    position: usize = 0,

    /// Returns the next option of all regions. A missing END is tolerated: several ROMs omit it
    /// when the options fill their buffer exactly. A length beyond the region is not.
    fn next(iterator: *Iterator) ParseError!?Option {
        while (iterator.region_index < iterator.regions.slices.len) {
            const region = iterator.regions.slices[iterator.region_index];
            var cursor: base.Cursor = .{ .buffer = region, .position = iterator.position };
            while (cursor.remaining() > 0) {
                const code = try cursor.int(u8);
                if (code == @backingInt(Code.pad)) continue;
                if (code == @backingInt(Code.end)) break;
                const value = try cursor.bytes(try cursor.int(u8));
                iterator.position = cursor.position;
                return .{ .code = code, .value = value };
            }
            iterator.region_index += 1;
            iterator.position = 0;
        }
        return null;
    }
};

/// First occurrence, whole size and number of occurrences of one code.
const OptionValue = struct { first: []const u8 = &.{}, size: u32 = 0, parts: u32 = 0 };

const Reader = struct {
    regions: Regions,
    found: [256]OptionValue = @splat(.{}),
    scratch: base.ByteWriter,

    fn scan(reader: *Reader) ParseError!void {
        var iterator = reader.regions.iterate();
        while (try iterator.next()) |option| {
            const found = &reader.found[option.code];
            if (found.parts == 0) found.first = option.value;
            found.parts += 1;
            found.size += @intCast(option.value.len);
        }
    }

    /// Returns the option's value, its parts joined (RFC 3396 section 7).
    fn bytes(reader: *Reader, code: Code) ParseError!?[]const u8 {
        const found = reader.found[@backingInt(code)];
        if (found.parts == 0) return null;
        if (found.parts == 1) return found.first;
        const begin = reader.scratch.position;
        var iterator = reader.regions.iterate();
        while (try iterator.next()) |option| {
            if (option.code != @backingInt(code)) continue;
            reader.scratch.bytes(option.value) catch return error.BadOption;
        }
        const joined = reader.scratch.written()[begin..];
        assert(joined.len == found.size);
        return joined;
    }

    fn array(reader: *Reader, code: Code, comptime size: usize) ParseError!?[size]u8 {
        const value = try reader.bytes(code) orelse return null;
        if (value.len != size) return error.BadOption;
        return value[0..size].*;
    }

    fn int(reader: *Reader, comptime T: type, code: Code) ParseError!?T {
        const raw = try reader.array(code, @sizeOf(T)) orelse return null;
        return std.mem.readInt(T, &raw, .big);
    }

    fn ip(reader: *Reader, code: Code) ParseError!?Ip4 {
        return .{ .bytes = try reader.array(code, 4) orelse return null };
    }

    fn ips(reader: *Reader, code: Code) ParseError![]const Ip4 {
        comptime assert(@sizeOf(Ip4) == 4 and @alignOf(Ip4) == 1);
        const value = try reader.bytes(code) orelse return &.{};
        if (value.len == 0) return error.BadOption;
        if (value.len % 4 != 0) return error.BadOption;
        return @ptrCast(value);
    }
};

/// The fields of a packet that can hold options.
pub const Fields = struct { options: []const u8, file: []const u8, sname: []const u8 };

pub const Parsed = struct { options: Options, file_overloaded: bool, sname_overloaded: bool };

/// Parses the options, including those in `file` and `sname` if option 52 says so.
pub fn parse(fields: Fields, scratch: *Scratch) ParseError!Parsed {
    assert(fields.options.len + fields.file.len + fields.sname.len <= scratch_size);
    var reader: Reader =
        .{ .regions = .{ .slices = .{ fields.options, &.{}, &.{} } }, .scratch = .init(scratch) };
    try reader.scan();
    const overload = try reader.int(u8, .overload) orelse 0;
    if (overload > 3) return error.BadOption;
    if (overload != 0) {
        if (overload & 1 != 0) reader.regions.slices[1] = fields.file;
        if (overload & 2 != 0) reader.regions.slices[2] = fields.sname;
        reader.found = @splat(.{});
        try reader.scan();
    }
    return .{
        .options = try readOptions(&reader),
        .file_overloaded = overload & 1 != 0,
        .sname_overloaded = overload & 2 != 0,
    };
}

fn readOptions(reader: *Reader) ParseError!Options {
    var options: Options = .{
        .server_identifier = try reader.ip(.server_identifier),
        .requested_ip = try reader.ip(.requested_ip),
        .lease_time_s = try reader.int(u32, .lease_time),
        .renewal_time_s = try reader.int(u32, .renewal_time),
        .rebinding_time_s = try reader.int(u32, .rebinding_time),
        .subnet_mask = try reader.ip(.subnet_mask),
        .routers = try reader.ips(.routers),
        .dns_servers = try reader.ips(.dns_servers),
        .host_name = try reader.bytes(.host_name),
        .domain_name = try reader.bytes(.domain_name),
        .interface_mtu = try reader.int(u16, .interface_mtu),
        .ntp_servers = try reader.ips(.ntp_servers),
        .vendor_specific = try reader.bytes(.vendor_specific),
        .parameter_request_list = try reader.bytes(.parameter_request_list),
        .max_message_size = try reader.int(u16, .max_message_size),
        .vendor_class = try reader.bytes(.vendor_class),
        .client_identifier = try reader.bytes(.client_identifier),
        .tftp_server_name = try reader.bytes(.tftp_server_name),
        .boot_file_name = try reader.bytes(.boot_file_name),
        .user_class = try reader.bytes(.user_class),
        .client_ndi = try reader.array(.client_ndi, 3),
        .ipxe = try reader.bytes(.ipxe),
        .subnet_selection = try reader.ip(.subnet_selection),
        .relay_agent = try reader.bytes(.relay_agent),
    };
    if (try reader.int(u8, .message_type)) |number| options.message_type = @fromBackingInt(number);
    if (try reader.bytes(.client_arch)) |list| {
        // RFC 4578 section 2.1: a list of 16-bit numbers.
        if (list.len == 0) return error.BadOption;
        if (list.len % 2 != 0) return error.BadOption;
        options.client_arch = @fromBackingInt(std.mem.readInt(u16, list[0..2], .big));
    }
    if (try reader.array(.client_machine_id, 17)) |raw|
        options.client_machine_id = .{ .type = raw[0], .guid = raw[1..17].* };
    return options;
}

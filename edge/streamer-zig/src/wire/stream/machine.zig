//! MACHINE (packages/proto/STREAM.md, "What the machine is"): a few facts of the device's hardware.
//! Part of `stream.zig`, which gives its guarantees.

const std = @import("std");
const base = @import("base");
const assert = std.debug.assert;

const Cursor = base.Cursor;

const header_size = 16;
pub const machine_size = 112;
const driver_size_max = 16;
pub const model_size_max = 64;

pub const Machine = struct {
    /// Processors that its system may use; not 0.
    cpu_count: u16,
    /// PCI ids, or those of virtio, of the network card that reaches the edge; 0: it has none.
    card_vendor: u16 = 0,
    card_device: u16 = 0,
    /// Not 0.
    memory_mib: u32,
    /// Speed of the card's link in Mbit/s; 0: it is not known.
    link_mbit: u32 = 0,
    /// Printable ASCII, padded with zeros: the driver of the card. Empty: it is not known.
    driver: [driver_size_max]u8 = @splat(0),
    /// Vendor and model of the machine, in the same form. Empty: it is not known.
    model: [model_size_max]u8 = @splat(0),

    pub fn driverName(machine: *const Machine) []const u8 {
        return std.mem.sliceTo(&machine.driver, 0);
    }

    pub fn modelName(machine: *const Machine) []const u8 {
        return std.mem.sliceTo(&machine.model, 0);
    }

    /// Truncated, with `?` for bytes that are not printable.
    pub fn paddedDriver(name: []const u8) [driver_size_max]u8 {
        return padded(driver_size_max, name);
    }

    pub fn paddedModel(name: []const u8) [model_size_max]u8 {
        return padded(model_size_max, name);
    }
};

fn padded(comptime size_max: usize, text: []const u8) [size_max]u8 {
    var bytes: [size_max]u8 = @splat(0);
    const size = @min(text.len, size_max);
    for (bytes[0..size], text[0..size]) |*kept, byte|
        kept.* = if (std.ascii.isPrint(byte)) byte else '?';
    return bytes;
}

pub const Error = error{ WrongSize, ReservedNotZero, BadValue };

/// `bytes` is the whole packet.
pub fn parse(bytes: []const u8) Error!Machine {
    if (bytes.len != machine_size) return error.WrongSize;
    var cursor: Cursor = .init(bytes[header_size..]);
    const cpu_count = cursor.int(u16) catch unreachable;
    const card_vendor = cursor.int(u16) catch unreachable;
    const card_device = cursor.int(u16) catch unreachable;
    if (cursor.int(u16) catch unreachable != 0) return error.ReservedNotZero;
    const machine: Machine = .{
        .cpu_count = cpu_count,
        .card_vendor = card_vendor,
        .card_device = card_device,
        .memory_mib = cursor.int(u32) catch unreachable,
        .link_mbit = cursor.int(u32) catch unreachable,
        .driver = (cursor.array(driver_size_max) catch unreachable).*,
        .model = (cursor.array(model_size_max) catch unreachable).*,
    };
    if (machine.cpu_count == 0 or machine.memory_mib == 0) return error.BadValue;
    try checkPadded(&machine.driver);
    try checkPadded(&machine.model);
    return machine;
}

fn checkPadded(bytes: []const u8) Error!void {
    const text = std.mem.sliceTo(bytes, 0);
    for (text) |byte| if (!std.ascii.isPrint(byte)) return error.BadValue;
    if (!std.mem.allEqual(u8, bytes[text.len..], 0)) return error.ReservedNotZero;
}

/// The header is written already.
pub fn emit(machine: *const Machine, out: []u8) []u8 {
    assert(machine.cpu_count > 0 and machine.memory_mib > 0);
    var writer: base.ByteWriter = .init(out[header_size..machine_size]);
    writer.int(u16, machine.cpu_count) catch unreachable;
    writer.int(u16, machine.card_vendor) catch unreachable;
    writer.int(u16, machine.card_device) catch unreachable;
    writer.int(u16, 0) catch unreachable;
    writer.int(u32, machine.memory_mib) catch unreachable;
    writer.int(u32, machine.link_mbit) catch unreachable;
    writer.bytes(&machine.driver) catch unreachable;
    writer.bytes(&machine.model) catch unreachable;
    return out[0..machine_size];
}

const testing = std.testing;

test "a driver's name and a model are made fit to be sent" {
    const short: Machine =
        .{ .cpu_count = 1, .memory_mib = 1, .driver = Machine.paddedDriver("e1000e\x07") };
    try testing.expectEqualStrings("e1000e?", short.driverName());
    const long: Machine = .{
        .cpu_count = 1,
        .memory_mib = 1,
        .driver = Machine.paddedDriver("a-driver-with-a-name"),
        .model = Machine.paddedModel("Vendor Model\xff"),
    };
    try testing.expectEqualStrings("a-driver-with-a-", long.driverName());
    try testing.expectEqualStrings("Vendor Model?", long.modelName());
}

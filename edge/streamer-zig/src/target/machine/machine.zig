//! What this machine is, for the report of its boot (packages/proto/STREAM.md, MACHINE): by
//! sysinfo(2), sysfs(5) and the socket to the edge. Read once, before the first packet; what the
//! system does not tell is left out.

const std = @import("std");
const stream = @import("wire").stream;
const sys = @import("host").sys;
const RamCache = @import("../ram_cache.zig");
const linux = std.os.linux;

const Machine = stream.Machine;

/// `fd` is the connected socket to the edge. Null: the system does not even tell its memory.
pub fn read(fd: i32) ?Machine {
    const memory_mib = RamCache.memoryBytes() >> 20;
    if (memory_mib == 0) return null;
    var machine: Machine = .{
        .cpu_count = std.math.lossyCast(u16, std.Thread.getCpuCount() catch 1),
        .memory_mib = std.math.lossyCast(u32, memory_mib),
    };
    machine.model = readModel();
    var name: [linux.IFNAMESIZE]u8 = undefined;
    readCard(&machine, interfaceOf(fd, &name) orelse return machine);
    return machine;
}

/// As SMBIOS tells, or the device tree; empty: neither does.
fn readModel() [stream.machine_model_size_max]u8 {
    const dmi = "/sys/class/dmi/id/";
    var buffers: [5][64]u8 = undefined;
    const firmware: Firmware = .{
        .vendor = readFile(dmi ++ "sys_vendor", &buffers[0]) orelse "",
        .product = readFile(dmi ++ "product_name", &buffers[1]) orelse "",
        .version = readFile(dmi ++ "product_version", &buffers[2]) orelse "",
        .board_vendor = readFile(dmi ++ "board_vendor", &buffers[3]) orelse "",
        .board = readFile(dmi ++ "board_name", &buffers[4]) orelse "",
    };
    var text: [160]u8 = undefined;
    const model = modelOf(&firmware, &text);
    if (model.len > 0) return Machine.paddedModel(model);
    const tree = readFile("/sys/firmware/devicetree/base/model", &buffers[0]) orelse "";
    return Machine.paddedModel(tree);
}

/// What SMBIOS says (SMBIOS 3.7, types 1 and 2).
const Firmware = struct {
    vendor: []const u8 = "",
    product: []const u8 = "",
    version: []const u8 = "",
    board_vendor: []const u8 = "",
    board: []const u8 = "",
};

/// What firmware has that nobody filled in.
const placeholders = [_][]const u8{
    "To Be Filled By O.E.M.", "System Product Name", "System manufacturer",  "System Version",
    "Default string",         "Not Specified",       "Not Applicable",       "None",
    "O.E.M.",                 "INVALID",             "Type1ProductConfigId",
};

fn isFilled(text: []const u8) bool {
    if (text.len == 0) return false;
    for (placeholders) |one| if (std.ascii.eqlIgnoreCase(text, one)) return false;
    return true;
}

/// Returns vendor and model, or those of the board where a machine has none (many that are built
/// from parts). Empty: neither is known.
fn modelOf(firmware: *const Firmware, buffer: *[160]u8) []const u8 {
    // Lenovo has a part number in the name and the model in the version.
    const is_lenovo = std.ascii.eqlIgnoreCase(firmware.vendor, "LENOVO");
    const product = if (is_lenovo and isFilled(firmware.version))
        firmware.version
    else
        firmware.product;
    if (isFilled(product)) return joined(firmware.vendor, product, buffer);
    if (isFilled(firmware.board)) return joined(firmware.board_vendor, firmware.board, buffer);
    return "";
}

fn joined(vendor: []const u8, model: []const u8, buffer: *[160]u8) []const u8 {
    if (!isFilled(vendor) or std.ascii.startsWithIgnoreCase(model, vendor)) return model;
    return std.mem.print(buffer, "{s} {s}", .{ vendor, model }) catch model;
}

fn readCard(machine: *Machine, interface: []const u8) void {
    var text: [64]u8 = undefined;
    if (readOf(interface, "device/vendor", &text)) |id| machine.card_vendor = parseId(id);
    if (readOf(interface, "device/device", &text)) |id| machine.card_device = parseId(id);
    if (readOf(interface, "speed", &text)) |speed|
        machine.link_mbit = std.fmt.parseInt(u32, speed, 10) catch 0;
    var path_buffer: [128]u8 = undefined;
    const path = pathOf(interface, "device/driver", &path_buffer) orelse return;
    var target: [256]u8 = undefined;
    const rc = linux.readlinkat(linux.AT.FDCWD, path, &target, target.len);
    const size = sys.check(rc) catch return;
    machine.driver = Machine.paddedDriver(std.fs.path.basename(target[0..size]));
}

fn pathOf(interface: []const u8, file: []const u8, buffer: *[128]u8) ?[*:0]const u8 {
    const path = std.mem.printSentinel(
        buffer,
        "/sys/class/net/{s}/{s}",
        .{ interface, file },
        0,
    ) catch return null;
    return path.ptr;
}

fn readOf(interface: []const u8, file: []const u8, buffer: *[64]u8) ?[]const u8 {
    var path_buffer: [128]u8 = undefined;
    return readFile(pathOf(interface, file, &path_buffer) orelse return null, buffer);
}

fn readFile(path: [*:0]const u8, buffer: *[64]u8) ?[]const u8 {
    const rc = linux.openat(linux.AT.FDCWD, path, .{ .CLOEXEC = true }, 0);
    const fd: i32 = @intCast(sys.check(rc) catch return null);
    defer sys.close(fd);
    const size = sys.check(linux.read(fd, buffer, buffer.len)) catch return null;
    return std.mem.trim(u8, buffer[0..size], " \n\x00");
}

/// As sysfs writes it: `0x8086`. 0: it is none.
fn parseId(text: []const u8) u16 {
    const digits = std.mem.cutPrefix(u8, text, "0x") orelse return 0;
    return std.fmt.parseInt(u16, digits, 16) catch 0;
}

/// `struct ifreq` and `struct ifconf` (netdevice(7)).
const Request = extern struct {
    name: [linux.IFNAMESIZE]u8,
    address: linux.sockaddr.in,
    rest: [8]u8,
};
const Requests = extern struct { size: i32, requests: [*]Request };
const SIOCGIFCONF = 0x8912;
const interfaces_max = 32;

comptime {
    std.debug.assert(@sizeOf(Request) == 40);
}

/// Returns the name of the interface that has the socket's own address.
pub fn interfaceOf(fd: i32, name: *[linux.IFNAMESIZE]u8) ?[]const u8 {
    var own: linux.sockaddr.in = undefined;
    var size: linux.socklen_t = @sizeOf(linux.sockaddr.in);
    _ = sys.check(linux.getsockname(fd, @ptrCast(&own), &size)) catch return null;
    if (own.family != linux.AF.INET) return null;
    var requests: [interfaces_max]Request = undefined;
    var all: Requests = .{ .size = @sizeOf(@TypeOf(requests)), .requests = &requests };
    _ = sys.check(linux.ioctl(fd, SIOCGIFCONF, @intFromPtr(&all))) catch return null;
    const count = @as(usize, @intCast(@max(0, all.size))) / @sizeOf(Request);
    for (requests[0..@min(count, interfaces_max)]) |*request| {
        if (request.address.family != linux.AF.INET) continue;
        if (request.address.addr != own.addr) continue;
        name.* = request.name;
        return std.mem.sliceTo(name, 0);
    }
    return null;
}

const testing = std.testing;

test "ids are parsed as sysfs writes them" {
    try testing.expectEqual(0x8086, parseId("0x8086"));
    try testing.expectEqual(0, parseId("8086"));
    try testing.expectEqual(0, parseId("0x12345"));
    try testing.expectEqual(0, parseId(""));
}

test "a model is vendor and name, those of the board, or nothing" {
    var text: [160]u8 = undefined;
    try testing.expectEqualStrings("Dell Inc. OptiPlex 7010", modelOf(&.{
        .vendor = "Dell Inc.",
        .product = "OptiPlex 7010",
        .version = "01",
        .board = "0YXT71",
    }, &text));
    try testing.expectEqualStrings("LENOVO ThinkPad T440p", modelOf(&.{
        .vendor = "LENOVO",
        .product = "20AWS0J100",
        .version = "ThinkPad T440p",
    }, &text));
    try testing.expectEqualStrings("HP ProDesk 400", modelOf(&.{
        .vendor = "HP",
        .product = "HP ProDesk 400",
    }, &text));
    try testing.expectEqualStrings("ASRock B450M Pro4", modelOf(&.{
        .vendor = "To Be Filled By O.E.M.",
        .product = "To Be Filled By O.E.M.",
        .board_vendor = "ASRock",
        .board = "B450M Pro4",
    }, &text));
    try testing.expectEqualStrings("", modelOf(&.{ .product = "Default string" }, &text));
}

test "this machine has a processor and memory, and the loopback is no card" {
    const rc = linux.socket(linux.AF.INET, linux.SOCK.DGRAM | linux.SOCK.CLOEXEC, 0);
    const fd: i32 = @intCast(try sys.check(rc));
    defer sys.close(fd);
    const loopback: linux.sockaddr.in =
        .{ .port = std.mem.nativeToBig(u16, 9), .addr = std.mem.nativeToBig(u32, 0x7f00_0001) };
    _ = try sys.check(linux.connect(fd, @ptrCast(&loopback), @sizeOf(linux.sockaddr.in)));
    var name: [linux.IFNAMESIZE]u8 = undefined;
    try testing.expectEqualStrings("lo", interfaceOf(fd, &name).?);
    const machine = read(fd).?;
    try testing.expect(machine.cpu_count > 0 and machine.memory_mib > 0);
    try testing.expectEqual(0, machine.card_vendor);
    try testing.expectEqualStrings("", machine.driverName());
    // Without a network there is no card to name.
    try testing.expectEqual(null, interfaceOf(-1, &name));
}

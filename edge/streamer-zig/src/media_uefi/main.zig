//! The first program of a boot medium on UEFI machines whose iPXE is too old to look for a script
//! beside itself (autoexec.ipxe came in 2021). It starts that iPXE, unmodified, with a keyboard on
//! which the command for the script is already typed; after the last key the machine's own keyboard
//! is back. Console input: UEFI 2.10 section 12.3; loading: section 7.4. It must never change
//! anything but the system table's console input, and only while it types.

const std = @import("std");
const uefi = std.os.uefi;
const DevicePath = uefi.protocol.DevicePath;
const Input = uefi.protocol.SimpleTextInput;
const Status = uefi.Status;
const literal = std.unicode.utf8ToUtf16LeStringLiteral;

const ipxe_path = literal("\\EFI\\BOOT\\ipxe.efi");
/// Ctrl-B answers the "Press Ctrl-B for the iPXE command line" of an iPXE without a script.
const keys = "\x02chain file:/EFI/BOOT/autoexec.ipxe\r";

/// The typed text, and the machine's console input, which iPXE gets back.
var typed_count: usize = 0;
var own_input: ?*Input = null;
var own_handle: ?uefi.Handle = null;
var typing: Input =
    .{ ._reset = reset, ._read_key_stroke = readKeyStroke, .wait_for_key = undefined };

/// Nobody is there to read a stack trace.
pub const panic = std.debug.no_panic;

pub fn main() Status {
    startIpxe() catch |reason| {
        say(literal("Bootfarm boot medium: iPXE could not be started: "));
        say(switch (reason) {
            error.SecurityViolation => literal("Secure Boot refused it; switch Secure Boot off"),
            error.NotFound => literal("EFI/BOOT/ipxe.efi is not on this medium"),
            error.OutOfResources => literal("out of memory"),
            else => literal("the firmware or iPXE reported an error"),
        });
        say(literal("\r\n"));
        return .load_error;
    };
    return .success;
}

fn startIpxe() !void {
    const table = uefi.system_table;
    const services = table.boot_services orelse return error.Unsupported;
    const self = try services.handleProtocol(uefi.protocol.LoadedImage, uefi.handle) orelse
        return error.Unsupported;
    const device = self.device_handle orelse return error.Unsupported;
    const device_path = try services.handleProtocol(DevicePath, device) orelse
        return error.Unsupported;
    const path = try device_path.createFileDevicePath(uefi.pool_allocator, ipxe_path);
    // By path, so that iPXE knows the volume of its `file:` names.
    const ipxe = try services.loadImage(false, uefi.handle, .{ .device_path = path });

    typing.wait_for_key = try services.createEvent(
        .{ .wait = true },
        .{ .tpl = .notify, .function = signalWhileTyping },
    );
    own_input = table.con_in;
    own_handle = table.console_in_handle;
    table.con_in = &typing;
    // Later versions of iPXE would read the extended protocol of this handle instead.
    table.console_in_handle = null;
    sign(table);
    defer giveKeyboardBack();
    // Not through std: it reads a size that firmware need not have set.
    var exit_data_size: usize = 0;
    switch (services._startImage(ipxe, &exit_data_size, null)) {
        .security_violation => return error.SecurityViolation,
        // iPXE has reported its own reason.
        else => {},
    }
}

fn giveKeyboardBack() void {
    uefi.system_table.con_in = own_input;
    uefi.system_table.console_in_handle = own_handle;
    sign(uefi.system_table);
}

/// UEFI 2.10 section 4.2.1: the header's checksum covers the whole table.
fn sign(table: *uefi.tables.SystemTable) void {
    table.hdr.crc32 = 0;
    const bytes: [*]const u8 = @ptrCast(table);
    table.hdr.crc32 = std.hash.Crc32.hash(bytes[0..table.hdr.header_size]);
}

fn reset(_: *Input, _: bool) callconv(uefi.cc) Status {
    return .success;
}

fn readKeyStroke(_: *Input, key: *Input.Key.Input) callconv(uefi.cc) Status {
    if (typed_count == keys.len) {
        const input = own_input orelse return .not_ready;
        return input._read_key_stroke(input, key);
    }
    key.* = .{ .scan_code = 0, .unicode_char = keys[typed_count] };
    typed_count += 1;
    if (typed_count == keys.len) giveKeyboardBack();
    return .success;
}

fn signalWhileTyping(event: uefi.Event, _: ?*anyopaque) callconv(uefi.cc) void {
    if (typed_count == keys.len) return;
    const services = uefi.system_table.boot_services orelse return;
    services.signalEvent(event) catch {};
}

fn say(text: [:0]const u16) void {
    const out = uefi.system_table.con_out orelse return;
    _ = out.outputString(text) catch {};
}

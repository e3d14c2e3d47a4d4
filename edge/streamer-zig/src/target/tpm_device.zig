//! A TPM 2.0 as Linux shows it: a file that takes one command and gives one response. Every command
//! has a time limit, and what a TPM asks for (a moment, its start, its self-test) is done and the
//! command sent again. Only a child process uses it (`device_key.zig`): when a TPM hangs in the
//! middle of a command, so does the process that closes the file.

const std = @import("std");
const linux = std.os.linux;
const tpm = @import("wire").tpm;
const sys = @import("host").sys;
const sys_time = @import("sys_time.zig");

pub const TpmDevice = @This();

fd: i32,
/// Every command ends by then.
deadline_us: u64,
/// Why the latest command was refused.
code: tpm.ResponseCode = .{ .value = 0 },
response: [tpm.response_size_max]u8 = undefined,

/// The kernel's resource manager first: it takes keys away that others have left behind.
pub const paths = [_][*:0]const u8{ "/dev/tpmrm0", "/dev/tpm0" };
const retry_interval_us = 20 * std.time.us_per_ms;
/// Of one command that the TPM refuses for now.
const retries_max = 200;

pub const Error = error{
    /// No answer in time.
    Silent,
    /// It gave other than a response to the command.
    Malformed,
    /// `code` has the reason.
    Refused,
};

/// Returns null if this machine has none.
pub fn open(deadline_us: u64) ?TpmDevice {
    const flags: linux.O = .{ .ACCMODE = .RDWR, .NONBLOCK = true, .CLOEXEC = true };
    for (paths) |path| {
        const fd = sys.check(linux.open(path, flags, 0)) catch continue;
        return .{ .fd = @intCast(fd), .deadline_us = deadline_us };
    }
    return null;
}

pub fn close(device: *TpmDevice) void {
    sys.close(device.fd);
    device.* = undefined;
}

/// Refuses a TPM that is not of version 2.0.
pub fn checkFamily(device: *TpmDevice) Error!void {
    var buffer: [tpm.command.size_max]u8 = undefined;
    const count = tpm.property_manufacturer - tpm.property_family + 1;
    const command = tpm.command.getProperties(&buffer, tpm.property_family, count);
    const properties = try parsed(tpm.response.parseProperties(try device.transact(command)));
    // "2.0" and a zero.
    if (properties.get(tpm.property_family) != 0x322e_3000) return error.Malformed;
}

/// Makes the device's key; `flush` gives its memory back.
pub fn createPrimary(device: *TpmDevice) Error!tpm.response.Primary {
    var buffer: [tpm.command.size_max]u8 = undefined;
    const command = tpm.command.createPrimary(&buffer);
    return parsed(tpm.response.parsePrimary(try device.transact(command)));
}

pub fn sign(
    device: *TpmDevice,
    key: u32,
    digest: *const [tpm.digest_size]u8,
) Error![tpm.signature_size]u8 {
    var buffer: [tpm.command.size_max]u8 = undefined;
    const command = tpm.command.sign(&buffer, key, digest);
    return parsed(tpm.response.parseSignature(try device.transact(command)));
}

pub fn flush(device: *TpmDevice, key: u32) Error!void {
    var buffer: [tpm.command.size_max]u8 = undefined;
    const command = tpm.command.flushContext(&buffer, key);
    return parsed(tpm.response.parseDone(try device.transact(command)));
}

/// The code was looked at before.
fn parsed(result: anytype) Error!@typeInfo(@TypeOf(result)).error_union.payload {
    return result catch error.Malformed;
}

/// Returns the successful response to a command.
fn transact(device: *TpmDevice, command: []const u8) Error![]const u8 {
    for (0..retries_max) |_| {
        const response = try device.exchange(command);
        const header = tpm.response.Header.parse(response) catch return error.Malformed;
        if (header.code.isSuccess()) return response;
        device.code = header.code;
        var buffer: [tpm.command.size_max]u8 = undefined;
        switch (header.code.remedy()) {
            .retry => device.pause(),
            // A refusal of these shows when the command is refused again.
            .startup => _ = try device.exchange(tpm.command.startup(&buffer)),
            .self_test => _ = try device.exchange(tpm.command.selfTest(&buffer)),
            .none => return error.Refused,
        }
    }
    return error.Refused;
}

fn exchange(device: *TpmDevice, command: []const u8) Error![]const u8 {
    while (true) {
        if (sys.monotonicUs() >= device.deadline_us) return error.Silent;
        const sent = sys.check(linux.write(device.fd, command.ptr, command.len)) catch |err|
            switch (err) {
                error.Interrupted => continue,
                // Another program uses it at this moment.
                error.WouldBlock => {
                    device.pause();
                    continue;
                },
                error.SystemCallFailed => return error.Malformed,
            };
        if (sent != command.len) return error.Malformed;
        break;
    }
    while (true) {
        const now_us = sys.monotonicUs();
        if (now_us >= device.deadline_us) return error.Silent;
        var timeout = sys_time.timespecOf(device.deadline_us - now_us);
        var polled = [_]linux.pollfd{.{ .fd = device.fd, .events = linux.POLL.IN, .revents = 0 }};
        _ = linux.ppoll(&polled, polled.len, &timeout, null);
        if (polled[0].revents == 0) continue;
        const response = &device.response;
        const size = sys.check(linux.read(device.fd, response, response.len)) catch |err|
            switch (err) {
                error.WouldBlock, error.Interrupted => continue,
                error.SystemCallFailed => return error.Malformed,
            };
        return response[0..size];
    }
}

fn pause(device: *const TpmDevice) void {
    const left_us = device.deadline_us -| sys.monotonicUs();
    const time = sys_time.timespecOf(@min(left_us, retry_interval_us));
    _ = linux.nanosleep(&time, null);
}

const testing = std.testing;

/// A TPM that answers with what a test has written down.
const ScriptedTpm = struct {
    device: TpmDevice,
    tpm_fd: i32,

    fn init(answers: []const []const u8) !ScriptedTpm {
        const fds = try @import("disk_link.zig").pair();
        for (answers) |answer| _ = linux.write(fds[1], answer.ptr, answer.len);
        return .{
            .device = .{ .fd = fds[0], .deadline_us = sys.monotonicUs() + std.time.us_per_s },
            .tpm_fd = fds[1],
        };
    }

    fn deinit(scripted: *ScriptedTpm) void {
        scripted.device.close();
        sys.close(scripted.tpm_fd);
    }

    fn takenCode(scripted: *const ScriptedTpm) ?u32 {
        var buffer: [tpm.command.size_max]u8 = undefined;
        const size = sys.check(
            linux.read(scripted.tpm_fd, &buffer, buffer.len),
        ) catch return null;
        return if (size < 10) null else std.mem.readInt(u32, buffer[6..10], .big);
    }
};

fn refusal(comptime code: u32) *const [10]u8 {
    const Answer = struct {
        const header = "\x80\x01\x00\x00\x00\x0a";
        const bytes = header.* ++ std.mem.toBytes(std.mem.nativeToBig(u32, code));
    };
    return &Answer.bytes;
}

test "what a TPM asks for is done, and the command sent again" {
    var scripted: ScriptedTpm = try .init(&.{
        refusal(0x100), refusal(0), // Startup
        refusal(0x922), // retry
        refusal(0x153), refusal(0), // SelfTest
        refusal(0),
    });
    defer scripted.deinit();
    try scripted.device.flush(0x8000_0000);
    for ([_]u32{ 0x165, 0x144, 0x165, 0x165, 0x143, 0x165 }) |code|
        try testing.expectEqual(code, scripted.takenCode().?);
    try testing.expectEqual(null, scripted.takenCode());
}

test "a TPM that refuses, errs or says nothing ends the attempt" {
    var locked: ScriptedTpm = try .init(&.{refusal(0x921)});
    defer locked.deinit();
    try testing.expectError(error.Refused, locked.device.createPrimary());
    try testing.expectEqual(0x921, locked.device.code.value);
    var nonsense: ScriptedTpm = try .init(&.{"nonsense, and more"});
    defer nonsense.deinit();
    try testing.expectError(error.Malformed, nonsense.device.createPrimary());
    var empty: ScriptedTpm = try .init(&.{refusal(0)});
    defer empty.deinit();
    try testing.expectError(error.Malformed, empty.device.checkFamily());
    var silent: ScriptedTpm = try .init(&.{});
    defer silent.deinit();
    silent.device.deadline_us = sys.monotonicUs() + 1000;
    try testing.expectError(error.Silent, silent.device.createPrimary());
    try testing.expectEqual(0x131, silent.takenCode().?);
}

test "a TPM that is always busy ends the attempt at its deadline" {
    var busy: ScriptedTpm = try .init(&@as([64][]const u8, @splat(refusal(0x922))));
    defer busy.deinit();
    busy.device.deadline_us = sys.monotonicUs() + 2 * retry_interval_us;
    try testing.expectError(error.Silent, busy.device.createPrimary());
    try testing.expect(busy.takenCode() != null);
}

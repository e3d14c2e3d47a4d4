//! The key of this machine in its TPM 2.0 (docs/decisions/0026-device-identity.md). A child process
//! makes the key, signs, and ends: the boot never waits longer for a TPM than the limits below,
//! whatever the TPM does. A machine without such a key boots as one that is known by its MAC
//! address; the console says why.

const std = @import("std");
const linux = std.os.linux;
const base = @import("base");
const core = @import("core");
const tpm = @import("wire").tpm;
const sys = @import("host").sys;
const sys_time = @import("sys_time.zig");
const console = @import("console.zig");
const disk_link = @import("disk_link.zig");
const TpmDevice = @import("tpm_device.zig");

pub const DeviceKey = @This();

/// SEC 1, uncompressed.
public_key: [tpm.public_key_size]u8,
/// To the child, which ends when it is closed.
link_fd: i32,

/// Making the key takes most TPMs 50 to 500 ms.
const make_us_max = 5 * std.time.us_per_s;
const sign_us_max = 2 * std.time.us_per_s;
/// For the edge's cookie. An edge that is away for longer gets no signature.
const idle_us_max = std.time.us_per_day;
/// How much longer the parent waits: the child has then ended by itself, or hangs in the kernel.
const margin_us = 500 * std.time.us_per_ms;

const PublicKey = extern struct { bytes: [tpm.public_key_size]u8 };
const Digest = extern struct { bytes: [tpm.digest_size]u8 };
const Signature = extern struct { bytes: [tpm.signature_size]u8 };

/// Makes the key; null after a line that says why there is none.
pub fn make() ?DeviceKey {
    const fds = disk_link.pair() catch return null;
    const pid = sys.check(linux.fork()) catch {
        for (fds) |fd| sys.close(fd);
        return null;
    };
    if (pid == 0) {
        sys.close(fds[0]);
        serve(fds[1]);
        linux.exit_group(0);
    }
    sys.close(fds[1]);
    const key = awaitMessage(PublicKey, fds[0], make_us_max + margin_us) catch |reason| {
        sys.close(fds[0]);
        // The child has said why it ended.
        if (reason == error.Silent) sayNone("does not answer");
        return null;
    };
    return .{ .public_key = key.bytes, .link_fd = fds[0] };
}

/// Returns null after a line that says why.
pub fn sign(key: *const DeviceKey, digest: *const [tpm.digest_size]u8) ?[tpm.signature_size]u8 {
    disk_link.send(key.link_fd, Digest{ .bytes = digest.* }) catch return null;
    const signature =
        awaitMessage(Signature, key.link_fd, sign_us_max + margin_us) catch |reason| {
            if (reason == error.Silent) sayNone("does not answer");
            return null;
        };
    return signature.bytes;
}

/// Ends the child, which gives the TPM's memory back.
pub fn end(key: *DeviceKey) void {
    sys.close(key.link_fd);
    key.* = undefined;
}

/// Names the key for people, as the dashboard does.
pub fn fingerprint(key: *const DeviceKey) [32]u8 {
    return core.stream.device_signature.fingerprintOf(&key.public_key);
}

fn awaitMessage(
    comptime Message: type,
    fd: i32,
    us_max: u64,
) (disk_link.Error || error{Silent})!Message {
    const deadline_us = sys.monotonicUs() + us_max;
    while (true) {
        if (try disk_link.receive(Message, fd)) |message| return message;
        const now_us = sys.monotonicUs();
        if (now_us >= deadline_us) return error.Silent;
        var timeout = sys_time.timespecOf(deadline_us - now_us);
        var polled = [_]linux.pollfd{.{ .fd = fd, .events = linux.POLL.IN, .revents = 0 }};
        _ = linux.ppoll(&polled, polled.len, &timeout, null);
    }
}

/// The child: it signs whatever its parent sends, until that closes the link.
fn serve(link_fd: i32) void {
    var device = TpmDevice.open(sys.monotonicUs() + make_us_max) orelse return console.say(
        "this machine has no TPM that Linux knows; it is known by its MAC address",
        .{},
    );
    defer device.close();
    const primary = makeIn(&device) catch |reason| return sayReason(&device, reason);
    defer {
        device.deadline_us = sys.monotonicUs() + sign_us_max;
        // What is left in memory goes with the file, if the kernel manages it.
        device.flush(primary.handle) catch {};
    }
    disk_link.send(link_fd, PublicKey{ .bytes = primary.public_key }) catch return;
    while (true) {
        const digest = awaitMessage(Digest, link_fd, idle_us_max) catch return;
        device.deadline_us = sys.monotonicUs() + sign_us_max;
        const signature = device.sign(primary.handle, &digest.bytes) catch |reason|
            return sayReason(&device, reason);
        disk_link.send(link_fd, Signature{ .bytes = signature }) catch return;
    }
}

fn makeIn(device: *TpmDevice) TpmDevice.Error!tpm.response.Primary {
    try device.checkFamily();
    return device.createPrimary();
}

fn sayReason(device: *const TpmDevice, reason: TpmDevice.Error) void {
    sayNone(switch (reason) {
        error.Silent => "does not answer",
        error.Malformed => "gives answers that are not of a TPM 2.0",
        error.Refused => device.code.sentence(),
    });
}

fn sayNone(why: []const u8) void {
    console.say("the TPM {s}; this machine is known by its MAC address", .{why});
}

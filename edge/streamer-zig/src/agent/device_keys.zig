//! Who a device is, by the key in its TPM (docs/decisions/0026-device-identity.md): judges the HELLO
//! that opens a session, before anything of a private image, of a write cache that outlives boots
//! or of a version in maintenance is opened. What this edge knows of a device's key stands in the
//! device's newest boot, and so in the journal; the desired state has precedence
//! (packages/proto/UPLINK.md, "Device keys").
//!
//! Without a control plane nobody could decide on a changed key: there a MAC address suffices, and
//! only a signature that is wrong is refused.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const mutants = @import("mutants.zig");
const assert = std.debug.assert;

const Boot = core.boot.Boot;
const Claim = core.stream.Server.Claim;
const DeviceIdentity = core.site.DeviceIdentity;

/// Returns what is known of a device, for its next boot.
pub fn identityOf(table: *core.boot.Table, mac: base.Mac) DeviceIdentity {
    if (mutants.has(.key_forgotten)) return .{};
    const earlier = table.get(table.findByMac(mac) orelse return .{}) orelse return .{};
    assert(earlier.identity.mac.eql(mac));
    return earlier.device_identity;
}

/// Judges a HELLO whose proof holds, and returns whether its session may open. `opens_private`: it
/// opens what is for the device alone. The decision is in the boot, for its report.
pub fn admits(boots: anytype, boot: *Boot, claim: *Claim, opens_private: bool) bool {
    // The resume secret reached only the device that was judged.
    if (claim.hello.kind != .token) return true;
    if (mutants.has(.keys_unjudged)) return true;
    var proved = core.stream.Server.verifyDevice(claim);
    if (mutants.has(.signature_unverified) and proved == .forged) proved = .{
        .signed = core.stream.device_signature.fingerprintOf(&claim.hello.device_key),
    };
    const device = boots.policy.deviceOf(boot.identity.mac) orelse return proved != .forged;
    const identity = &boot.device_identity;
    _ = identity.follow(device.identity());
    var policy = boots.policy.source.state.keyPolicyOf(device);
    if (mutants.has(.approval_left_out)) policy.enrolment = .first_boot;
    const decision = identity.judge(policy, proved);
    const judged: Boot.DeviceKey = .{
        .label = decision.label,
        .key = if (proved == .signed) proved.signed else null,
        .revision = identity.revision,
    };
    boot.touched = boot.touched or decision.is_changed;
    if (boot.device_key == null or !std.meta.eql(boot.device_key.?, judged)) {
        // Once a boot: whoever knows its token could fill the log.
        const is_first = if (boot.device_key) |before| !isAlarm(before.label) else true;
        boot.device_key = judged;
        boot.changed = true;
        boot.touched = true;
        if (is_first and decision.is_alarm) boots.io.log(
            "{f}: {s}. Decide on the device's page in the dashboard.",
            .{ boot.identity.mac, sentenceOf(decision.label) },
        );
    }
    assert(decision.is_alarm == isAlarm(decision.label));
    assert(decision.access != .private or decision.label != .signature_invalid);
    return switch (decision.access) {
        .refused => false,
        .shared => !opens_private or
            (mutants.has(.missing_key_opens) and decision.label == .key_missing),
        .private => true,
    };
}

/// Returns why the session of a boot that `admits` has refused does not open, for its report.
pub fn refusalOf(boot: *const Boot) []const u8 {
    // Without a control plane only a wrong signature is refused.
    const judged = boot.device_key orelse return sentenceOf(.signature_invalid);
    return switch (judged.label) {
        .key_waits => "its key waits for approval",
        .no_key => "it has proved no key",
        .key_known => unreachable, // It opens everything.
        .key_changed, .key_missing, .signature_invalid => sentenceOf(judged.label),
    };
}

fn isAlarm(label: DeviceIdentity.Label) bool {
    return switch (label) {
        .key_changed, .key_missing, .signature_invalid => true,
        .key_known, .key_waits, .no_key => false,
    };
}

fn sentenceOf(label: DeviceIdentity.Label) []const u8 {
    return switch (label) {
        .key_changed => "its key is not the one that is known of this device",
        .key_missing => "it has not proved the key that is known of this device",
        .signature_invalid => "the signature of its key is wrong, and its boot is refused",
        .key_known, .key_waits, .no_key => unreachable, // They are no alarms.
    };
}

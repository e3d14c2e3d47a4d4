//! Who a device is, by the key in its TPM (docs/decisions/0026-device-identity.md): judges the
//! HELLO that opens a session, before anything of a private image, of a write cache that outlives
//! boots or of a version in maintenance is opened. What this edge knows of a device's key stands in
//! each of the device's boots, and so in the journal; the desired state has precedence
//! (packages/proto/UPLINK.md, "Device keys"). A key counts only from the moment at which its boot
//! ends the device's others: a boot beside a device that runs must never pass one on.
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

/// What follows from a HELLO; nothing is changed yet.
pub const Verdict = struct {
    /// Its session may open.
    opens: bool,
    /// Null: there is nothing to record.
    record: ?Record = null,

    const Record = struct {
        identity: DeviceIdentity,
        judged: Boot.DeviceKey,
        is_alarm: bool,
    };
};

/// Judges a HELLO whose proof holds. `opens_private`: it opens what is for the device alone.
pub fn judge(boots: anytype, boot: *const Boot, claim: *Claim, opens_private: bool) Verdict {
    // The resume secret reached only the device that was judged.
    if (claim.hello.kind != .token) return .{ .opens = true };
    if (mutants.has(.keys_unjudged)) return .{ .opens = true };
    var proved = core.stream.Server.verifyDevice(claim);
    if (mutants.has(.signature_unverified) and proved == .forged) {
        proved = .{ .signed = core.stream.device_signature.fingerprintOf(&claim.hello.device_key) };
        // The server would verify it, too.
        claim.device = proved;
    }
    const device = boots.policy.deviceOf(boot.identity.mac) orelse return .{
        // The state that takes a device away says nothing of its key any more. Who never was
        // registered has no key.
        .opens = proved != .forged and (!opens_private or boot.assignment.device_id == null),
    };
    var identity = boot.device_identity;
    _ = identity.follow(device.identity());
    var policy = boots.policy.source.state.keyPolicyOf(device);
    if (mutants.has(.approval_left_out)) policy.enrolment = .first_boot;
    const decision = identity.judge(policy, proved);
    identity.noteStated(device.identity());
    assert(decision.is_alarm == isAlarm(decision.label));
    assert(decision.access != .private or decision.label != .signature_invalid);
    return .{
        .opens = switch (decision.access) {
            .refused => false,
            .shared => !opens_private or
                (mutants.has(.missing_key_opens) and decision.label == .key_missing),
            .private => true,
        },
        .record = .{
            .identity = identity,
            .judged = .{
                .label = decision.label,
                .key = if (proved == .signed) proved.signed else null,
                .revision = identity.revision,
            },
            .is_alarm = decision.is_alarm,
        },
    };
}

/// A desired state has arrived: what it says of keys need not be kept here.
pub fn onState(boots: anytype) void {
    var iterator = boots.table.iterate();
    while (iterator.next()) |boot| {
        const device = boots.policy.deviceOf(boot.identity.mac);
        boot.device_identity.noteStated(if (device) |listed| listed.identity() else null);
    }
}

/// Records a verdict in its boot, for the boot's report, and what is known of the device from now
/// on in all its boots: the later one of two may have begun before the earlier one proved a key.
pub fn record(boots: anytype, boot: *Boot, verdict: *const Verdict) void {
    const made = &(verdict.record orelse return);
    const is_decided = !std.meta.eql(boot.device_identity.state, made.identity.state);
    if (!std.meta.eql(boot.device_identity, made.identity)) boot.touched = true;
    boot.device_identity = made.identity;
    if (is_decided) tellOthers(boots, boot);
    if (boot.device_key) |known| if (std.meta.eql(known, made.judged)) return;
    // Once a boot: whoever knows its token could fill the log.
    const is_first = if (boot.device_key) |before| !isAlarm(before.label) else true;
    boot.device_key = made.judged;
    boot.changed = true;
    boot.touched = true;
    if (is_first and made.is_alarm) boots.io.log(
        "{f}: {s}. Decide on the device's page in the dashboard.",
        .{ boot.identity.mac, sentenceOf(made.judged.label) },
    );
}

/// The journal has it before the device is answered: a process that is killed must not leave a
/// later boot that would accept another key.
fn tellOthers(boots: anytype, boot: *const Boot) void {
    var others = boots.table.iterateOf(boot.identity.mac);
    while (others.next()) |ref| {
        const other = boots.table.get(ref).?;
        if (other == boot) continue;
        other.device_identity = boot.device_identity;
        boots.journalNow(other);
    }
}

/// Returns why the session of a boot that `judge` has refused does not open, for its report.
pub fn refusalOf(boot: *const Boot) []const u8 {
    // Only a device that the state lists is judged by its policy.
    const judged = boot.device_key orelse return if (boot.assignment.device_id == null)
        sentenceOf(.signature_invalid)
    else
        "it is no longer registered";
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

//! Encodes a boot as the JSON of an uplink report (packages/proto/UPLINK.md, `boot` in
//! src/uplink.ts), at most 4 KiB plus its read times, transfers, series and network, which have
//! capacities of their own. If it does not fit, parts are dropped in this order: the device's
//! shortest units down to 12 steps in all, offers down to four, shortest gaps, size histograms, the
//! loader's steps, read times by phase, read times, text chosen by devices and servers, offers down
//! to two, the device's other steps, all offers, earliest phases.

const std = @import("std");
const base = @import("base");
const boot_phase = @import("phase.zig");
const Boot = @import("boot.zig");
const boot_packets = @import("packets.zig");
const BootReadTimes = @import("read_times.zig");
const Guest = @import("guest.zig");
const Machine = @import("facts.zig").Machine;
const Network = @import("network.zig");
const LoaderSteps = @import("loader_steps.zig");
const LostDevice = @import("lost.zig");
const Series = @import("traffic/series.zig");
const Transfers = @import("traffic/transfers.zig");
const key_text = @import("../uplink/key_text.zig");
const stream = @import("wire").stream;
const assert = std.debug.assert;

const Phase = boot_phase.Phase;
const PhaseRecord = boot_phase.PhaseRecord;
const Stringify = std.json.Stringify;

/// Without read times, which have a capacity of their own and displace none of a device's steps.
const size_bare_max = 4096;
const size_of_times_max = 2048;
/// Transfers that do not fit are counted only.
const size_of_transfers_max = 2048;
/// Each bucket has at most 10 + 5 + 5 digits and three commas.
const size_of_series_max = 100 + 23 * Series.buckets_max;
/// All of its numbers at their longest.
const size_of_network_max = 1024;
/// For the boot and for each of two phases.
pub const size_max = size_bare_max + 3 * size_of_times_max + size_of_transfers_max +
    size_of_series_max + size_of_network_max;

/// JSON numbers stay exact up to here.
pub const number_max = (1 << 53) - 1;
/// This many steps of a device rank above gaps and histograms.
const steps_kept_long = 12;
/// This many offers rank above gaps and histograms: this edge's own, and its rivals'.
const offers_kept_long = 4;
const offers_kept_longer = 2;

pub const Options = struct {
    revision: u64,
    /// Made by the demo's history generator; never happened.
    generated: bool = false,
    /// Includes read times by phase: omitted in a report that waits with many others.
    read_phases: bool = true,
};

/// The parts of a report to leave out.
const Cut = struct {
    steps_kept: u8,
    offers_kept: u8,
    gaps_kept: u32,
    read_phases: bool,
    read_sizes: bool = true,
    loader_steps: bool = true,
    read_times: bool = true,
    texts: bool = true,
    first_phase: u8 = 0,
};

/// Writes the boot's JSON object into `buffer` and returns it.
pub fn encode(boot: *const Boot, options: Options, buffer: *[size_max]u8) []const u8 {
    var cut: Cut = .{
        .steps_kept = if (boot.guest) |*guest| guest.steps.count else 0,
        .offers_kept = boot.offers.count(),
        .gaps_kept = boot_phase.gaps_max * Phase.count,
        .read_phases = options.read_phases,
    };
    while (true) {
        const times_count: usize = if (!cut.read_times or boot.read_times.isEmpty())
            0
        else if (cut.read_phases and boot.read_times.system != null) 3 else 1;
        const size = size_bare_max + times_count * size_of_times_max + sizeOfFiles(boot);
        var writer: std.Io.Writer = .fixed(buffer[0..size]);
        if (write(boot, options, cut, &writer)) |_| return writer.buffered() else |_| {}
        if (cut.steps_kept > steps_kept_long) {
            cut.steps_kept -= 1;
        } else if (cut.offers_kept > offers_kept_long) {
            cut.offers_kept -= 1;
        } else if (cut.gaps_kept > 0) {
            cut.gaps_kept = @min(cut.gaps_kept, gapCount(boot)) -| 1;
        } else if (cut.read_sizes) {
            cut.read_sizes = false;
        } else if (cut.loader_steps) {
            cut.loader_steps = false;
        } else if (cut.read_phases) {
            cut.read_phases = false;
        } else if (cut.read_times) {
            cut.read_times = false;
        } else if (cut.texts) {
            cut.texts = false;
        } else if (cut.offers_kept > offers_kept_longer) {
            cut.offers_kept -= 1;
        } else if (cut.steps_kept > 0) {
            cut.steps_kept -= 1;
        } else if (cut.offers_kept > 0) {
            cut.offers_kept -= 1;
        } else {
            // Without any phase an object is below 2 KiB, so the loop ends.
            assert(cut.first_phase < Phase.count);
            cut.first_phase += 1;
        }
    }
}

fn write(
    boot: *const Boot,
    options: Options,
    cut: Cut,
    writer: *std.Io.Writer,
) Stringify.Error!void {
    var json: Stringify = .{ .writer = writer };
    try json.beginObject();
    try field(&json, "id", &boot.identity.id.toText());
    try number(&json, "revision", options.revision);
    try field(&json, "mac", &boot.identity.mac.toText());
    if (boot.facts.machine_id) |id| try field(&json, "machineId", &id.toText());
    if (boot.assignment.managed) {
        if (boot.assignment.device_id) |id| try field(&json, "deviceId", &id.toText());
        if (!hasOutcome(boot, .local_disk)) {
            if (boot.assignment.vdisk_id) |id| try field(&json, "vdiskId", &id.toText());
            try field(&json, "versionId", &boot.assignment.version_id.toText());
        }
    }
    if (boot.assignment.trial) |id| try field(&json, "trial", &id.toText());
    try field(&json, "simulated", boot.isSimulated());
    try field(&json, "generated", options.generated);
    try number(&json, "startedUnixMs", boot.started_unix_ms);
    try writeFacts(boot, cut, &json);
    try number(&json, "reconnects", boot.reconnects);
    if (boot.resumed_us) |at_us| try number(&json, "resumedUs", at_us);
    if (boot.failover) |*failover| {
        try json.objectField("handOver");
        try json.beginObject();
        try number(&json, "number", failover.number);
        try field(&json, "fromEdgeId", &failover.from_edge.toText());
        try number(&json, "atUs", failover.at_us);
        try json.endObject();
    }
    if (boot.device_key) |*device_key| try writeDeviceKey(&json, device_key);
    if (boot.stream_was_open) try writeReadAhead(boot, &json);
    if (cut.loader_steps) try writeLoaderSteps(&json, &boot.loader_steps);
    if (cut.loader_steps) if (boot.loader_steps.boot_command_us) |at_us|
        try number(&json, "bootCommandUs", at_us);
    try writeTransfers(&json, &boot.transfers);
    try writeSeries(&json, &boot.series);
    if (boot.facts.network) |*network| try writeNetwork(&json, network);
    if (cut.read_times) try writeReadTimes(&json, &boot.read_times, cut.read_phases);
    if (cut.offers_kept > 0) try writeOffers(&json, &boot.offers, cut.offers_kept, cut.texts);
    if (cut.texts and boot.menu_entry.size > 0)
        try field(&json, "menuEntry", boot.menu_entry.slice());
    if (!hasOutcome(boot, .ready)) try writeLastPackets(&json, &boot.last_packets);
    try json.objectField("phases");
    try json.beginArray();
    const floor_us = shortestGapKept(boot, cut.gaps_kept);
    for (boot.phases[cut.first_phase..], cut.first_phase..) |*place, index| {
        const record = if (place.*) |*value| value else continue;
        try writePhase(&json, @fromBackingInt(@as(u8, @intCast(index))), record, cut, floor_us);
    }
    try json.endArray();
    if (boot.guest) |*guest| try writeGuest(&json, guest, cut.steps_kept);
    if (boot.lost) |*lost| try writeLost(&json, lost);
    if (boot.silentSince()) |since_us| try number(&json, "silentSinceUs", since_us);
    if (boot.outcome) |*outcome| try writeOutcome(&json, outcome, cut);
    try json.endObject();
}

fn hasOutcome(boot: *const Boot, kind: boot_phase.OutcomeKind) bool {
    const outcome = boot.outcome orelse return false;
    return outcome == kind;
}

fn writeFacts(boot: *const Boot, cut: Cut, json: *Stringify) Stringify.Error!void {
    const facts = &boot.facts;
    if (facts.client_arch) |arch| try number(json, "clientArch", arch);
    if (cut.texts and facts.vendor_class.size > 0)
        try field(json, "vendorClass", facts.vendor_class.slice());
    if (cut.texts and facts.user_class.size > 0)
        try field(json, "userClass", facts.user_class.slice());
    if (facts.ip) |ip| {
        try json.objectField("ip");
        try json.print("\"{f}\"", .{ip});
    }
    if (facts.mtu) |mtu| try number(json, "mtu", mtu);
    if (facts.cipher) |cipher| try field(json, "cipher", @tagName(cipher));
    if (boot.router_wait.pause) |*pause| {
        try json.objectField("routerWait");
        try json.beginObject();
        try number(json, "atUs", pause.at_us);
        try number(json, "durationUs", pause.duration_us);
        try number(json, "solicitations", pause.solicitations);
        try json.endObject();
    }
    if (facts.machine) |*machine| try writeMachine(json, machine);
    if (facts.program) |*program| {
        try json.objectField("program");
        try json.beginObject();
        try field(json, "set", program.set.slice());
        try field(json, "file", program.file.slice());
        try json.endObject();
    }
}

fn writeMachine(json: *Stringify, machine: *const Machine) Stringify.Error!void {
    try json.objectField("machine");
    try json.beginObject();
    try number(json, "processors", machine.cpu_count);
    try number(json, "memoryMib", machine.memory_mib);
    if (machine.card_vendor != 0) {
        try json.objectField("card");
        try json.print("\"{x:0>4}:{x:0>4}\"", .{ machine.card_vendor, machine.card_device });
    }
    if (machine.driver.size > 0) try field(json, "driver", machine.driver.slice());
    if (machine.link_mbit > 0) try number(json, "linkMbit", machine.link_mbit);
    if (machine.model.size > 0) try field(json, "model", machine.model.slice());
    try json.endObject();
}

/// Counts of 0 and what is not known are left out.
fn writeNetwork(json: *Stringify, network: *const Network) Stringify.Error!void {
    const said = &network.said;
    try json.objectField("network");
    try json.beginObject();
    if (said.card.duplex != .unknown) try field(json, "duplex", @tagName(said.card.duplex));
    inline for (.{
        .{ "mtu", said.card.mtu },
        .{ "linkMbit", said.card.link_mbit },
        .{ "carrierChanges", said.card.carrier_changes },
        .{ "receiveErrors", said.card.receive_errors },
        .{ "crcErrors", said.card.crc_errors },
        .{ "receiveDrops", said.card.receive_drops },
        .{ "sendErrors", said.card.send_errors },
        .{ "socketDrops", said.card.socket_drops },
        .{ "lostSize", said.size_lost },
        .{ "lostSizeCount", said.size_lost_count },
    }) |entry| if (entry[1] > 0) try number(json, entry[0], entry[1]);
    try number(json, "sizeMax", said.size_max);
    try number(json, "size", said.size);
    const down = network.toDevice();
    if (down.expected > 0) {
        try json.objectField("toDevice");
        try json.beginObject();
        try number(json, "packets", down.expected);
        try number(json, "lost", down.lost);
        try number(json, "runs", said.runs);
        try number(json, "runPackets", said.run_packets);
        try number(json, "longestRun", said.run_max);
        try json.endObject();
    }
    const up = network.fromDevice();
    if (up.expected > 0) {
        try json.objectField("fromDevice");
        try json.beginObject();
        try number(json, "packets", up.expected);
        try number(json, "lost", up.lost);
        try json.endObject();
    }
    if (said.ordered > 0) {
        try json.objectField("order");
        try json.beginObject();
        try number(json, "packets", said.ordered);
        try number(json, "late", said.reordered);
        try number(json, "distance", said.reorder_max);
        try json.endObject();
    }
    if (said.rtt_count > 0) {
        try json.objectField("rtt");
        try json.beginObject();
        try number(json, "count", said.rtt_count);
        try number(json, "minUs", said.rtt_min_us);
        try number(json, "p50Us", said.rtt_p50_us);
        try number(json, "p95Us", said.rtt_p95_us);
        try json.endObject();
    }
    try json.endObject();
}

/// Writes nothing if there are none; a step without its end is in progress, or was left off.
fn writeLoaderSteps(json: *Stringify, loader: *const LoaderSteps) Stringify.Error!void {
    for (loader.steps) |slot| {
        if (slot != null) break;
    } else return;
    try json.objectField("loaderSteps");
    try json.beginArray();
    for (loader.steps, 0..) |slot, index| {
        const step = slot orelse continue;
        try json.beginObject();
        const name: LoaderSteps.Name = @fromBackingInt(@as(u8, @intCast(index)));
        try field(json, "name", @tagName(name));
        try number(json, "startUs", step.start_us);
        if (step.end_us) |end_us| try number(json, "durationUs", end_us -| step.start_us);
        try json.endObject();
    }
    try json.endArray();
}

/// What transfers, series and network take: they displace nothing else, and nothing displaces them.
fn sizeOfFiles(boot: *const Boot) usize {
    var discarded: [size_of_transfers_max + size_of_series_max + size_of_network_max]u8 =
        undefined;
    var scratch: std.Io.Writer = .fixed(&discarded);
    var json: Stringify = .{ .writer = &scratch };
    json.beginObject() catch unreachable;
    writeTransfers(&json, &boot.transfers) catch unreachable;
    writeSeries(&json, &boot.series) catch unreachable;
    if (boot.facts.network) |*network| writeNetwork(&json, network) catch unreachable;
    return scratch.buffered().len;
}

/// Writes nothing if there are none. Leaves out the last ones that do not fit.
fn writeTransfers(json: *Stringify, transfers: *const Transfers) Stringify.Error!void {
    if (transfers.count() == 0) return;
    // The fields beside the list.
    const reserve = 64;
    var discarded: [size_of_transfers_max - reserve]u8 = undefined;
    var scratch: std.Io.Writer = .fixed(&discarded);
    var trial: Stringify = .{ .writer = &scratch };
    trial.beginArray() catch unreachable;
    var fitting: u8 = 0;
    for (transfers.slots[0..transfers.count()]) |*slot| {
        writeTransfer(&trial, &slot.*.?) catch break;
        fitting += 1;
    }
    try json.objectField("transfers");
    try json.beginArray();
    for (transfers.slots[0..fitting]) |*slot| try writeTransfer(json, &slot.*.?);
    try json.endArray();
    const left_out = @as(u64, transfers.left_out) + transfers.count() - fitting;
    if (left_out > 0) try number(json, "transfersLeftOut", left_out);
}

fn writeTransfer(json: *Stringify, transfer: *const Transfers.Transfer) Stringify.Error!void {
    try json.beginObject();
    try field(json, "name", transfer.name.slice());
    try field(json, "protocol", @tagName(transfer.protocol));
    try number(json, "startUs", transfer.start_us);
    try number(json, "durationUs", transfer.last_us - transfer.start_us);
    try number(json, "bytes", transfer.bytes);
    if (transfer.retransmitted > 0) try number(json, "retransmitted", transfer.retransmitted);
    if (transfer.requests > 1) try number(json, "requests", transfer.requests);
    if (transfer.block_size > 0) try number(json, "blockSize", transfer.block_size);
    if (transfer.outcome) |outcome| try field(json, "outcome", @tagName(outcome));
    try json.endObject();
}

/// Writes nothing if nothing was sent, and no list of zeros.
fn writeSeries(json: *Stringify, series: *const Series) Stringify.Error!void {
    if (series.used == 0) return;
    try json.objectField("series");
    try json.beginObject();
    try number(json, "widthUs", series.width_us);
    try writeBuckets(json, series, "bytes");
    try writeBuckets(json, series, "retransmissions");
    try writeBuckets(json, series, "reads");
    try json.endObject();
}

fn writeBuckets(
    json: *Stringify,
    series: *const Series,
    comptime name: []const u8,
) Stringify.Error!void {
    for (series.slice()) |*bucket| {
        if (@field(bucket, name) > 0) break;
    } else return;
    try json.objectField(name);
    try json.beginArray();
    for (series.slice()) |*bucket| try json.write(@field(bucket, name));
    try json.endArray();
}

fn writeDeviceKey(json: *Stringify, device_key: *const Boot.DeviceKey) Stringify.Error!void {
    try json.objectField("deviceKey");
    try json.beginObject();
    try field(json, "label", @tagName(device_key.label));
    if (device_key.key) |key| try field(json, "key", &key_text.write(key));
    if (device_key.revision > 0) try number(json, "revision", device_key.revision);
    try json.endObject();
}

fn writeLost(json: *Stringify, lost: *const LostDevice) Stringify.Error!void {
    try json.objectField("lost");
    try json.beginObject();
    try field(json, "reason", @tagName(lost.reason));
    if (lost.refusal) |refusal| try field(json, "refusal", @tagName(refusal));
    try number(json, "atUs", lost.at_us);
    if (lost.restart_at_us) |at_us| try number(json, "restartAtUs", at_us);
    if (lost.order_id) |id| try field(json, "powerOrderId", &id.toText());
    try json.endObject();
}

fn writeReadAhead(boot: *const Boot, json: *Stringify) Stringify.Error!void {
    const of = &boot.read_ahead;
    try json.objectField("readAhead");
    try json.beginObject();
    try field(json, "hadProfile", of.had_profile);
    try number(json, "askedBytes", of.asked_bytes);
    try number(json, "usedBytes", of.used_bytes);
    try number(json, "waitedReads", of.waited_reads);
    try json.endObject();
}

fn writePhase(
    json: *Stringify,
    phase: Phase,
    record: *const PhaseRecord,
    cut: Cut,
    floor_us: u64,
) Stringify.Error!void {
    const traffic = &record.traffic;
    try json.beginObject();
    try field(json, "name", @tagName(phase));
    try number(json, "startUs", record.start_us);
    if (record.durationUs()) |duration_us| try number(json, "durationUs", duration_us);
    try field(json, "source", @tagName(record.source));
    try number(json, "bytesIn", traffic.bytes_in);
    try number(json, "bytesOut", traffic.bytes_out);
    try number(json, "packetsIn", traffic.packets_in);
    try number(json, "packetsOut", traffic.packets_out);
    try number(json, "retries", traffic.retries);
    try number(json, "missingFragments", traffic.missing_fragments);
    try number(json, "reads", record.reads);
    if (cut.read_sizes and record.reads > 0) try writeReadSizes(json, record);
    if (cut.gaps_kept > 0 and record.gap_count > 0) {
        try json.objectField("gaps");
        try json.beginArray();
        for (record.gapSlice()) |gap| {
            if (gap.duration_us < floor_us) continue;
            try json.beginObject();
            try number(json, "atUs", gap.at_us);
            try number(json, "durationUs", gap.duration_us);
            try json.endObject();
        }
        try json.endArray();
    }
    try json.endObject();
}

/// Classes above the largest that occurred are left out.
fn writeReadSizes(json: *Stringify, record: *const PhaseRecord) Stringify.Error!void {
    var used: usize = record.read_sizes.len;
    while (used > 0 and record.read_sizes[used - 1] == 0) used -= 1;
    try json.objectField("readSizes");
    try json.beginArray();
    for (record.read_sizes[0..used]) |value| try json.write(@min(value, number_max));
    try json.endArray();
}

fn writeOutcome(
    json: *Stringify,
    outcome: *const boot_phase.Outcome,
    cut: Cut,
) Stringify.Error!void {
    try json.objectField("outcome");
    try json.beginObject();
    try field(json, "kind", @tagName(outcome.*));
    switch (outcome.*) {
        .ready, .superseded, .local_disk => {},
        .silent => |phase| try field(json, "phase", @tagName(phase)),
        .failed => |*failure| {
            try field(json, "phase", @tagName(failure.phase));
            try field(json, "cause", @tagName(failure.cause));
            if (cut.texts and failure.text.size > 0) try field(json, "text", failure.text.slice());
        },
    }
    try json.endObject();
}

fn field(json: *Stringify, name: []const u8, value: anytype) Stringify.Error!void {
    try json.objectField(name);
    try json.write(value);
}

fn number(json: *Stringify, name: []const u8, value: u64) Stringify.Error!void {
    try json.objectField(name);
    try json.write(@min(value, number_max));
}

fn gapCount(boot: *const Boot) u32 {
    var total: u32 = 0;
    for (boot.phases) |place| total += if (place) |record| record.gap_count else 0;
    return total;
}

/// Length of the `kept`-th longest gap of the boot; 0 keeps all. With equal lengths a few more may
/// be dropped.
fn shortestGapKept(boot: *const Boot, kept: u32) u64 {
    const total = gapCount(boot);
    if (kept >= total) return 0;
    var lengths: [boot_phase.gaps_max * Phase.count]u64 = undefined;
    var filled: u32 = 0;
    for (&boot.phases) |*place| {
        const record = if (place.*) |*value| value else continue;
        for (record.gapSlice()) |gap| {
            lengths[filled] = gap.duration_us;
            filled += 1;
        }
    }
    assert(filled == total);
    base.sort(u64, lengths[0..filled], {}, std.sort.desc(u64));
    return if (kept == 0) std.math.maxInt(u64) else lengths[kept - 1];
}

/// A guest's steps in order of start. Of equal starts, the one reported first is first.
pub const SortedSteps = struct {
    buffer: [stream.steps_max]stream.Step = undefined,
    count: u8 = 0,

    pub fn init(guest: *const Guest) SortedSteps {
        var sorted: SortedSteps = .{};
        var steps = guest.steps.view().iterate();
        while (steps.next()) |step| : (sorted.count += 1) sorted.buffer[sorted.count] = step;
        base.sort(stream.Step, sorted.buffer[0..sorted.count], {}, before);
        return sorted;
    }

    pub fn slice(sorted: *const SortedSteps) []const stream.Step {
        return sorted.buffer[0..sorted.count];
    }

    fn before(_: void, a: stream.Step, b: stream.Step) bool {
        return a.start_us < b.start_us;
    }

    /// Counts the steps that are dropped before this one: units before others, short ones before
    /// long ones.
    fn rank(sorted: *const SortedSteps, index: usize) usize {
        const step = sorted.buffer[index];
        var better: usize = 0;
        for (sorted.slice(), 0..) |other, at| {
            const is_unit = step.group == .unit;
            const other_is_unit = other.group == .unit;
            better += @intFromBool(if (is_unit != other_is_unit)
                is_unit
            else if (other.duration_us != step.duration_us)
                other.duration_us > step.duration_us
            else
                at < index);
        }
        return better;
    }
};

/// Writes the field `guest` with at most `steps_kept` of its steps.
fn writeGuest(json: *Stringify, guest: *const Guest, steps_kept: u8) Stringify.Error!void {
    try json.objectField("guest");
    try json.beginObject();
    try signed(json, "kernelStartUs", guest.kernel_start_us);
    try json.objectField("steps");
    try json.beginArray();
    const sorted: SortedSteps = .init(guest);
    for (sorted.slice(), 0..) |step, index| {
        if (sorted.rank(index) >= steps_kept) continue;
        try json.beginObject();
        try json.objectField("group");
        try json.write(@tagName(step.group));
        try json.objectField("name");
        try json.write(step.name);
        try signed(json, "startUs", step.start_us);
        try number(json, "durationUs", step.duration_us);
        try json.endObject();
    }
    try json.endArray();
    if (guest.write_cache) |cache| {
        try json.objectField("writeCache");
        try json.beginObject();
        try number(json, "usedBytes", cache.used);
        try number(json, "sizeBytes", cache.size);
        try number(json, "atUs", cache.at_us);
        if (guest.cache_status.class != .device_ram)
            try word(json, "class", @tagName(guest.cache_status.class));
        if (guest.cache_status.state != .ok)
            try word(json, "state", @tagName(guest.cache_status.state));
        if (guest.secondsUntilFull()) |seconds| try number(json, "fullInSeconds", seconds);
        try json.endObject();
    }
    if (guest.order_id) |id| {
        try json.objectField("powerOrderId");
        try json.write(&id.toText());
    }
    try json.endObject();
}

fn word(json: *Stringify, name: []const u8, text: []const u8) Stringify.Error!void {
    try json.objectField(name);
    try json.write(text);
}

fn signed(json: *Stringify, name: []const u8, value: i64) Stringify.Error!void {
    try json.objectField(name);
    try json.write(std.math.clamp(value, -number_max, number_max));
}

/// Writes the `kept` highest-ranking offers, in order of time.
fn writeOffers(
    json: *Stringify,
    offers: *const boot_packets.Offers,
    kept: u8,
    with_texts: bool,
) Stringify.Error!void {
    try json.objectField("offers");
    try json.beginArray();
    for (&offers.slots, 0..) |*slot, index| {
        const offer = if (slot.*) |*value| value else break;
        if (offers.rank(index) >= kept) continue;
        try json.beginObject();
        try field(json, "atUs", @min(offer.at_us, number_max));
        try field(json, "server", offer.server);
        try field(json, "ours", offer.ours);
        try field(json, "kind", @tagName(offer.kind));
        if (offer.your_ip) |ip| try field(json, "yourIp", ip);
        if (offer.next_server) |ip| try field(json, "nextServer", ip);
        if (offer.relay) |ip| try field(json, "relay", ip);
        if (with_texts and offer.file.size > 0) try field(json, "file", offer.file.slice());
        if (with_texts and offer.vendor_class.size > 0)
            try field(json, "vendorClass", offer.vendor_class.slice());
        try json.endObject();
    }
    try json.endArray();
}

/// Writes nothing if no packet was recorded.
fn writeLastPackets(json: *Stringify, last: *const boot_packets.LastPackets) Stringify.Error!void {
    if (last.from_device == null and last.from_edge == null) return;
    try json.objectField("lastPackets");
    try json.beginObject();
    if (last.from_device) |record| try writePacket(json, "fromDevice", record);
    if (last.from_edge) |record| try writePacket(json, "fromEdge", record);
    try json.endObject();
}

fn writePacket(
    json: *Stringify,
    name: []const u8,
    record: boot_packets.PacketRecord,
) Stringify.Error!void {
    var buffer: [boot_packets.packet_text_size_max]u8 = undefined;
    var writer: std.Io.Writer = .fixed(&buffer);
    record.packet.format(&writer) catch {};
    try json.objectField(name);
    try json.beginObject();
    try field(json, "atUs", @min(record.at_us, number_max));
    try field(json, "what", writer.buffered());
    try json.endObject();
}

/// Writes the field `readTimes`, unless nothing was measured.
fn writeReadTimes(
    json: *Stringify,
    times: *const BootReadTimes,
    with_phases: bool,
) Stringify.Error!void {
    if (times.isEmpty()) return;
    try json.objectField("readTimes");
    try json.beginObject();
    try writePart(json, &times.whole());
    if (with_phases) if (times.system) |*system| {
        try json.objectField("phases");
        try json.beginArray();
        try writeReadPhase(json, "initramfs", &times.initramfs);
        try writeReadPhase(json, "system", system);
        try json.endArray();
    };
    try json.endObject();
}

fn writeReadPhase(json: *Stringify, name: []const u8, part: *const Part) Stringify.Error!void {
    try json.beginObject();
    try json.objectField("name");
    try json.write(name);
    try writePart(json, part);
    try json.endObject();
}

fn writePart(json: *Stringify, part: *const Part) Stringify.Error!void {
    try json.objectField("bytes");
    try json.write(@min(part.bytes, number_max));
    inline for (Part.histogram_names) |name| try writeHistogram(json, name, &@field(part, name));
}

fn writeHistogram(
    json: *Stringify,
    name: []const u8,
    histogram: *const base.DurationHistogram,
) Stringify.Error!void {
    const used = histogram.used() orelse return;
    try json.objectField(name);
    try json.beginObject();
    try json.objectField("firstBucket");
    try json.write(used.first);
    try json.objectField("counts");
    try json.write(used.counts);
    try json.objectField("maxUs");
    try json.write(histogram.max_us);
    try json.objectField("sumUs");
    try json.write(@min(histogram.sum_us, number_max));
    try json.endObject();
}

const testing = std.testing;
const Part = @import("read_times.zig").Part;

const testBoot = @import("report_test.zig").testBoot;

/// Writes one cut, whatever would fit.
fn written(boot: *const Boot, cut: Cut, buffer: *[4 * size_max]u8) ![]const u8 {
    var writer: std.Io.Writer = .fixed(buffer);
    try write(boot, .{ .revision = 1 }, cut, &writer);
    return writer.buffered();
}

fn uncut(boot: *const Boot) Cut {
    return .{
        .steps_kept = if (boot.guest) |*guest| guest.steps.count else 0,
        .offers_kept = boot.offers.count(),
        .gaps_kept = boot_phase.gaps_max * Phase.count,
        .read_phases = true,
    };
}

test "empty texts are left out, and so are all when they do not fit" {
    var boot = testBoot();
    boot.facts.vendor_class = .empty;
    boot.facts.user_class = .empty;
    boot.outcome = .{ .failed = .{ .phase = .dhcp, .cause = .nbp_not_found } };
    boot.offers.slots[0] = .{ .server = .zero, .ours = false, .kind = .address };
    const names = [_][]const u8{ "vendorClass", "userClass", "menuEntry", "text", "\"file\":\"x" };
    var buffer: [4 * size_max]u8 = undefined;
    var cut = uncut(&boot);
    const bare = try written(&boot, cut, &buffer);
    for (names) |name| try testing.expectEqual(null, std.mem.find(u8, bare, name));
    try testing.expectEqual(1, std.mem.count(u8, bare, "\"file\""));
    const letter: base.UntrustedText = .init("x");
    boot.facts.vendor_class = letter;
    boot.facts.user_class = letter;
    boot.menu_entry = letter;
    boot.offers.slots[0].?.file = letter;
    boot.offers.slots[0].?.vendor_class = letter;
    boot.outcome.?.failed.text = letter;
    const full = try written(&boot, cut, &buffer);
    for (names) |name| try testing.expect(std.mem.find(u8, full, name) != null);
    try testing.expectEqual(2, std.mem.count(u8, full, "vendorClass"));
    cut.texts = false;
    const without = try written(&boot, cut, &buffer);
    for (names) |name| try testing.expectEqual(null, std.mem.find(u8, without, name));
}

test "gaps and steps are dropped to the number that is kept, the shortest first" {
    var boot = testBoot();
    for ([_]Phase{ .nbp, .stage2 }, [_]u64{ 300_000, 301_000 }) |phase, silence_us| {
        var record: PhaseRecord = .init(0, .observed);
        for (0..2) |round| record.touch(record.last_us + silence_us + 1000 * 2 * round);
        boot.phases[@backingInt(phase)] = record;
    }
    // 300, 301, 302 and 303 ms.
    try testing.expectEqual(4, gapCount(&boot));
    const floors = [_]u64{ std.math.maxInt(u64), 303_000, 302_000, 301_000, 0, 0 };
    for (floors, 0..) |floor_us, kept|
        try testing.expectEqual(floor_us, shortestGapKept(&boot, @intCast(kept)));
    var buffer: [4 * size_max]u8 = undefined;
    var cut = uncut(&boot);
    for ([_]usize{ 0, 1, 2, 3, 4 }) |kept| {
        cut.gaps_kept = @intCast(kept);
        const text = try written(&boot, cut, &buffer);
        try testing.expectEqual(kept, std.mem.count(u8, text, "\"durationUs\":30"));
        try testing.expectEqual(kept == 0, std.mem.find(u8, text, "gaps") == null);
    }
    var steps: stream.StepList = .empty;
    for (0..3) |index| try steps.append(
        .{ .group = .kernel, .name = "k", .start_us = @intCast(index), .duration_us = 5 },
    );
    boot.apply(1, .{ .guest = .{ .uptime_us = 1, .steps = steps.view() } });
    const sorted: SortedSteps = .init(&boot.guest.?);
    for (0..3) |index| try testing.expectEqual(index, sorted.rank(index));
    for (0..4) |kept| {
        cut.steps_kept = @intCast(kept);
        const text = try written(&boot, cut, &buffer);
        try testing.expectEqual(kept, std.mem.count(u8, text, "\"group\""));
    }
}

test {
    _ = @import("report_test.zig");
}

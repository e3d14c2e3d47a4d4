//! The events of a simulated site.

const Packet = @import("../kit/network.zig").Packet;

/// The link of a device; the attacker's is the next one.
pub const Link = u8;

pub const Event = union(enum) {
    /// A packet arrives.
    packet: Packet,
    /// The time has come at which a device wanted to be called.
    device_wake: Link,
    edge_wake: u8,
    /// Messages of this edge to the others are due.
    peer_wake: u8,
    edge_second,
    /// A sync of a write layer of this edge has ended.
    work_end: u8,
    /// The next job of the thread of boot profiles at this edge ends.
    profile_job: u8,
    http: struct { link: Link, serial: u32, step: HttpStep },
    reports: struct { edge: u8, serial: u32, step: ReportStep },
    power_on: Link,
    edge_crash: struct { edge: u8, is_power_cut: bool },
    edge_start: u8,
    /// The next program takes the place of the edge's, in the same process.
    edge_exchange: u8,
    /// A version comes into the edge's store, is found damaged there, or is mended.
    copy: struct { edge: u8, version: u8, copy: Copy },
    /// The edge's uplink goes up or down.
    uplink: struct { edge: u8, is_up: bool },
    /// The plan of the control plane changes.
    change_state,
    cut: struct { link: Link, duration_us: u64 },
    mend: Link,
    switch_version,
    /// A user orders this device to restart, or to be switched off.
    order: Link,
    /// Somebody clears the TPM of this device: it has another key from then on.
    clear_tpm: Link,
    attack,
    /// An IPv6 router solicitation of this device arrives at the edges.
    router_solicitation: Link,
    /// "No router here" arrives at this device.
    router_answer: Link,
    /// This edge has solicited a router.
    router_question: u8,
    heal,
    /// Time for schedules, and for what may go wrong with them.
    schedule_turn,
};

/// A version in the store of an edge.
pub const Copy = enum { absent, damaged, whole };

pub const HttpStep = enum(u8) { request, piece, closed };

/// The sender of an edge's reports is due, a request or its late copy arrives at the control plane,
/// or the edge gets the answer or gives up.
pub const ReportStep = enum(u8) { wake, arrival, late_copy, answer, timeout };

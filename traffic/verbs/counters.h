/* What an adapter counts, after NVIDIA's driver: the folder that its files lie in, and their names.
 * "own" are in no file: what CLOSLAB_VERBS_COUNTS tells besides. */
#pragma once

#define VERBS_COUNTERS(X) \
    X(counters, port_xmit_packets) \
    X(counters, port_xmit_data) /* words of four bytes, */ \
    X(counters, port_rcv_packets) \
    X(counters, port_rcv_data) /* as InfiniBand counts */ \
    X(counters, port_rcv_errors) \
    X(hw_counters, np_ecn_marked_roce_packets) \
    X(hw_counters, np_cnp_sent) \
    X(hw_counters, rp_cnp_handled) \
    X(hw_counters, rp_cnp_ignored) \
    X(hw_counters, out_of_sequence) \
    X(hw_counters, duplicate_request) \
    X(hw_counters, packet_seq_err) \
    X(hw_counters, implied_nak_seq_err) \
    X(hw_counters, local_ack_timeout_err) \
    X(hw_counters, rnr_nak_retry_err) \
    X(hw_counters, out_of_buffer) \
    X(hw_counters, rx_icrc_encapsulated) \
    X(hw_counters, rx_write_requests) \
    X(hw_counters, rx_read_requests) \
    X(hw_counters, rx_atomic_requests) \
    X(hw_counters, req_cqe_error) \
    X(hw_counters, req_cqe_flush_error) \
    X(hw_counters, resp_cqe_error) \
    X(hw_counters, resp_cqe_flush_error) \
    X(hw_counters, roce_adp_retrans) /* none: a loss costs all that followed it */ \
    X(own, retransmitted_packets)

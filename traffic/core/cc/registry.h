/* Every congestion control, a line each: its name, which is also that of its file, who may use it,
 * what it hears of the fabric, and what it goes by in words.
 *
 * C includes this with a CC of its own (cc.h, cc.c); Python reads the lines as they stand here, and
 * the parameters that each file declares (traffic/congestion.py).
 */
CC(dcqcn, CC_ROCE, CC_MARKS, "marks")
CC(dctcp, CC_ROCE, CC_ECHOES, "the share of marks")
CC(hpcc, CC_ROCE, CC_TELEMETRY, "telemetry of every hop")
CC(nscc, CC_UET | CC_MRC, CC_DELAY, "delay and marks")
CC(pcm, CC_ROCE | CC_UET | CC_MRC, CC_DELAY, "what an algorithm in C of yours says")
CC(poseidon, CC_ROCE, CC_CSIG, "the worst hop's delay, and what is free there, by CSIG")
CC(powertcp, CC_ROCE, CC_TELEMETRY, "power, by telemetry of every hop")
CC(rccc, CC_UET, CC_CREDIT, "what the receiver grants")
CC(swift, CC_UET | CC_MRC, CC_DELAY, "delay against a target")
CC(timely, CC_ROCE, CC_DELAY, "the gradient of round trips")

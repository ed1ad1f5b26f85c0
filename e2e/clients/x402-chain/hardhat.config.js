// A chain with the number of base-sepolia that makes a block every half second.
module.exports = { networks: { hardhat: { chainId: 84532, mining: { auto: false, interval: 500 } } } };
